//! What is wrong with a region, in a bounded number of sentences.

/// More sentences than anyone reads.
const MOST: usize = 32;

/// Sentences, each once.
#[derive(Debug, Default)]
pub(super) struct Problems {
    sentences: Vec<String>,
    more: u64,
}

impl Problems {
    pub(super) fn add(&mut self, sentence: String) {
        if self.sentences.contains(&sentence) {
        } else if self.sentences.len() < MOST {
            self.sentences.push(sentence);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn into_sentences(mut self) -> Vec<String> {
        if self.more > 0 {
            self.sentences
                .push(format!("and {} problems more", self.more));
        }
        self.sentences
    }
}
