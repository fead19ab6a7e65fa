//! Pictures as records of one size in a few files: what CIFAR, Animal-10N's binary form and the MNIST family share.
//!
//! Record i of a file lies at `head + i * (skip + w * h * c)`, so a picture costs one look at mapped memory, and a file is
//! never read whole. A mapped file must not be cut short while it is in use; the system ends a program that reads past its end.

use crate::block::Block;
use crate::{Error, Image, ImageStore, Result, Shape};
use std::borrow::Cow;
use std::path::PathBuf;

/// Where things are in a file of records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Bytes before the first record.
    pub head: usize,
    /// Bytes of a record before its pixels.
    pub skip: usize,
    /// Size of every picture.
    pub shape: Shape,
}

impl Layout {
    /// Bytes per record.
    pub fn record(&self) -> usize {
        self.skip + self.shape.len()
    }
}

/// How many records a file must hold.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Count {
    /// Exactly so many, as the official set has.
    Exactly(usize),
    /// Any whole number but none.
    Any,
}

struct RecordFile {
    path: PathBuf,
    bytes: Block,
    /// Records before this file.
    start: usize,
    len: usize,
}

/// Records of one size, channel by channel, from one or several files.
pub(crate) struct Records {
    files: Vec<RecordFile>,
    layout: Layout,
}

impl Records {
    /// Records of mapped files, in their order.
    pub fn open(paths: &[PathBuf], layout: Layout, count: Count) -> Result<Self> {
        let files = paths.iter().map(|path| Ok((path.clone(), Block::map(path)?))).collect::<Result<_>>()?;
        Self::new(files, layout, count)
    }

    /// Records in bytes that are there already; a path is where they came from.
    pub fn new(sources: Vec<(PathBuf, Block)>, layout: Layout, count: Count) -> Result<Self> {
        let record = layout.record();
        let mut files: Vec<RecordFile> = Vec::with_capacity(sources.len());
        let mut start = 0;
        for (path, bytes) in sources {
            let body = bytes.len().saturating_sub(layout.head);
            let len = body / record;
            let problem = match count {
                Count::Exactly(n) if bytes.len() != layout.head + n * record => {
                    format!(
                        "{} bytes, but {n} records of {record} are {}",
                        bytes.len(),
                        layout.head + n * record
                    )
                }
                Count::Any if len == 0 || !body.is_multiple_of(record) => {
                    let rest = body % record;
                    format!(
                        "{} bytes are {len} records of {record} and {rest} bytes of record {len}",
                        bytes.len()
                    )
                }
                _ => {
                    files.push(RecordFile { path, bytes, start, len });
                    start += len;
                    continue;
                }
            };
            return Err(Error::format(path, None, problem + "; copy or download the file again"));
        }
        Ok(Self { files, layout })
    }

    fn records(&self) -> impl Iterator<Item = (&RecordFile, usize, &[u8])> {
        self.files.iter().flat_map(|file| {
            let records = file.bytes[self.layout.head..].chunks_exact(self.layout.record());
            records.take(file.len).enumerate().map(move |(i, record)| (file, i, record))
        })
    }

    /// The labels that `read` finds in the bytes before the pixels, all below `classes`.
    pub fn labels(&self, classes: usize, read: impl Fn(&[u8]) -> u32) -> Result<Vec<u32>> {
        self.records()
            .map(|(file, i, record)| {
                let label = read(&record[..self.layout.skip]);
                if (label as usize) < classes {
                    return Ok(label);
                }
                let problem = format!(
                    "label {label}, but the classes are 0 to {}; is this another data set?",
                    classes - 1
                );
                Err(Error::format(&file.path, format!("record {i}"), problem))
            })
            .collect()
    }

    fn find(&self, index: usize) -> Result<(&RecordFile, &[u8])> {
        let file = self.files.iter().find(|file| index < file.start + file.len);
        let Some(file) = file else {
            let path = self.files.first().map(|file| file.path.clone()).unwrap_or_default();
            return Err(Error::format(path, None, format!("no record {index}: there are {}", self.len())));
        };
        let at = self.layout.head + (index - file.start) * self.layout.record() + self.layout.skip;
        Ok((file, &file.bytes[at..at + self.layout.shape.len()]))
    }
}

impl ImageStore for Records {
    fn len(&self) -> usize {
        self.files.last().map_or(0, |file| file.start + file.len)
    }
    fn load(&self, index: usize) -> Result<Image> {
        Ok(Image::from_planes(self.layout.shape, self.find(index)?.1))
    }
    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(self.find(index)?.1))
    }
    fn origin(&self, index: usize) -> Option<String> {
        let (file, _) = self.find(index).ok()?;
        Some(format!("{}, record {}", file.path.display(), index - file.start))
    }
    fn shape(&self) -> Option<Shape> {
        Some(self.layout.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: Layout = Layout { head: 2, skip: 1, shape: Shape { width: 2, height: 1, channels: 3 } };

    fn records(bytes: Vec<u8>, count: Count) -> Result<Records> {
        Records::new(vec![("a.bin".into(), bytes.into())], TINY, count)
    }

    #[test]
    fn records_of_several_files_count_on_and_planes_become_pixels() {
        let first = [vec![0, 0], vec![4, 1, 2, 3, 4, 5, 6]].concat();
        let second = [vec![0, 0], vec![5, 11, 12, 13, 14, 15, 16], vec![6, 21, 22, 23, 24, 25, 26]].concat();
        let files = vec![("a".into(), first.into()), ("b".into(), second.into())];
        let store = Records::new(files, TINY, Count::Any).unwrap();
        assert_eq!(store.len(), 3);
        assert_eq!(store.labels(7, |head| head[0].into()).unwrap(), [4, 5, 6]);
        assert_eq!(store.load(0).unwrap().pixels, [1, 3, 5, 2, 4, 6]);
        assert_eq!(store.load(2).unwrap().pixels, [21, 23, 25, 22, 24, 26]);
        assert_eq!(store.bytes(1).unwrap().as_ref(), [11, 12, 13, 14, 15, 16]);
        assert_eq!(store.origin(2).unwrap(), "b, record 1");
        assert!(store.load(3).unwrap_err().to_string().contains("no record 3"));
    }

    #[test]
    fn a_label_out_of_range_names_file_and_record() {
        let store = records(vec![0, 0, 1, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0], Count::Any).unwrap();
        let message = store.labels(9, |head| head[0].into()).unwrap_err().to_string();
        assert!(message.contains("a.bin, record 1") && message.contains("label 9"), "{message}");
    }

    #[test]
    fn sizes_that_are_no_whole_records_are_errors() {
        for (bytes, count) in
            [(0, Count::Any), (2, Count::Any), (8, Count::Any), (10, Count::Any), (9, Count::Exactly(2))]
        {
            let Err(error) = records(vec![0; bytes], count) else { panic!("{bytes} bytes were taken") };
            assert!(error.to_string().contains("a.bin"), "{error}");
        }
        assert_eq!(records(vec![0; 16], Count::Exactly(2)).map(|r| r.len()).unwrap(), 2);
    }
}
