//! The free functions of `fs`, directories, and the options to open a file with.

mod common;

use std::collections::HashSet;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::os::unix::fs::{DirEntryExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::pin::Pin;

use common::{TempDir, poll_once, run};
use gmp_io::{AsyncReadExt, AsyncWriteExt};
use gmp_os::fs::{self, DirBuilder, DirEntry, OpenOptions, ReadDir};

#[test]
fn whole_files() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.join("file");
        fs::write(&path, b"array").await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), b"array");
        fs::write(&path, "str".to_owned()).await.unwrap();
        assert_eq!(fs::read_to_string(&path).await.unwrap(), "str");
        fs::write(&path, vec![0xff, 0xfe]).await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), [0xff, 0xfe]);
        let error = fs::read_to_string(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        fs::write(&path, bytes::Bytes::from_static(b"bytes"))
            .await
            .unwrap();
        fs::write(&path, &b"x"[..0]).await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), b"");
        let error = fs::read(dir.join("none")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = fs::write(dir.join("none/file"), "x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_borrowed_path_need_not_outlive_the_call() {
    run(async || {
        let dir = TempDir::new();
        let reading = {
            let path = dir.file("file", "text");
            async move { fs::read(path.as_path()).await }
        };
        assert_eq!(reading.await.unwrap(), b"text");
    });
}

#[test]
fn copy_rename_and_remove() {
    run(async || {
        let dir = TempDir::new();
        let (a, b) = (dir.file("a", "hello"), dir.join("b"));
        assert_eq!(fs::copy(&a, &b).await.unwrap(), 5);
        assert_eq!(std::fs::read(&b).unwrap(), b"hello");
        std::fs::write(&a, "new").unwrap();
        fs::rename(&a, &b).await.unwrap();
        assert_eq!(std::fs::read(&b).unwrap(), b"new");
        assert_eq!(
            fs::rename(&a, &b).await.unwrap_err().kind(),
            ErrorKind::NotFound
        );
        assert_eq!(
            fs::copy(&a, &b).await.unwrap_err().kind(),
            ErrorKind::NotFound
        );
        fs::remove_file(&b).await.unwrap();
        assert_eq!(
            fs::remove_file(&b).await.unwrap_err().kind(),
            ErrorKind::NotFound
        );
    });
}

#[test]
fn directories() {
    run(async || {
        let dir = TempDir::new();
        let (one, deep) = (dir.join("one"), dir.join("one/two/three"));
        let error = fs::create_dir(&deep).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        fs::create_dir(&one).await.unwrap();
        let error = fs::create_dir(&one).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        fs::create_dir_all(&deep).await.unwrap();
        fs::create_dir_all(&deep).await.unwrap();
        assert!(deep.is_dir());
        let error = fs::remove_dir(&one).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty);
        fs::remove_dir(&deep).await.unwrap();
        fs::remove_dir_all(&one).await.unwrap();
        assert!(!one.exists());
        let error = fs::remove_dir_all(&one).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn dir_builder() {
    run(async || {
        let dir = TempDir::new();
        let mut builder = DirBuilder::new();
        builder.mode(0o750).create(dir.join("a")).await.unwrap();
        let mode = std::fs::metadata(dir.join("a"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o750 & !umask());
        let error = builder.create(dir.join("a")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        builder.recursive(true);
        builder.create(dir.join("a")).await.unwrap();
        builder.create(dir.join("b/c")).await.unwrap();
        assert!(dir.join("b/c").is_dir());
    });

    fn umask() -> u32 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("Umask:"))
            .unwrap();
        u32::from_str_radix(line["Umask:".len()..].trim(), 8).unwrap()
    }
}

#[test]
fn links() {
    run(async || {
        let dir = TempDir::new();
        let (file, hard, soft) = (dir.file("file", "text"), dir.join("hard"), dir.join("soft"));
        fs::hard_link(&file, &hard).await.unwrap();
        assert_eq!(fs::metadata(&hard).await.unwrap().nlink(), 2);
        fs::symlink(&file, &soft).await.unwrap();
        assert_eq!(fs::read_link(&soft).await.unwrap(), file);
        assert!(fs::metadata(&soft).await.unwrap().is_file());
        assert!(fs::symlink_metadata(&soft).await.unwrap().is_symlink());
        assert_eq!(
            fs::canonicalize(&soft).await.unwrap(),
            file.canonicalize().unwrap()
        );
        let error = fs::symlink(&file, &soft).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        let error = fs::hard_link(dir.join("none"), dir.join("x"))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(fs::read_link(&file).await.is_err());

        assert!(fs::try_exists(&soft).await.unwrap());
        fs::remove_file(&file).await.unwrap();
        assert!(!fs::try_exists(&soft).await.unwrap());
        assert!(!fs::try_exists(dir.join("none")).await.unwrap());
        // A file is no directory: that is an error, not an absence... or so the kernel says.
        assert!(fs::try_exists(hard.join("below")).await.is_err());
        let error = fs::canonicalize(&soft).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn permissions() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.file("file", "");
        let mut permissions = fs::metadata(&path).await.unwrap().permissions();
        permissions.set_mode(0o604);
        fs::set_permissions(&path, permissions.clone())
            .await
            .unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o604);
        let error = fs::set_permissions(dir.join("none"), permissions)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn open_options() {
    run(async || {
        let dir = TempDir::new();
        let path = dir.join("file");
        let error = OpenOptions::new().read(true).open(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = OpenOptions::default().open(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);

        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(0o600);
        let mut file = options.open(&path).await.unwrap();
        file.write_all(b"hello").await.unwrap();
        file.flush().await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);

        let mut file = OpenOptions::new().append(true).open(&path).await.unwrap();
        file.write_all(b" world").await.unwrap();
        file.flush().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"hello world");

        let options = options.clone().truncate(true).to_owned();
        options.open(&path).await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        let error = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);

        std::os::unix::fs::symlink(&path, dir.join("link")).unwrap();
        let error = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(dir.join("link"))
            .await
            .unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ELOOP));

        let mut std = std::fs::OpenOptions::new();
        std.read(true);
        let mut file = OpenOptions::from(std).open(&path).await.unwrap();
        assert_eq!(file.read(&mut [0; 8]).await.unwrap(), 0);
        assert!(format!("{options:?}").contains("write: true"));
    });
}

async fn collect(entries: &mut ReadDir) -> Vec<DirEntry> {
    let mut all = Vec::new();
    while let Some(entry) = entries.next_entry().await.unwrap() {
        all.push(entry);
    }
    all
}

#[test]
fn every_entry_is_listed_once() {
    run(async || {
        // Around the size of a chunk, and several of them.
        for count in [0, 1, 31, 32, 33, 64, 300] {
            let dir = TempDir::new();
            for i in 0..count {
                dir.file(&i.to_string(), "");
            }
            let mut entries = fs::read_dir(dir.path()).await.unwrap();
            let all = collect(&mut entries).await;
            let names: HashSet<_> = all.iter().map(DirEntry::file_name).collect();
            assert_eq!((all.len(), names.len()), (count, count));
            assert!(entries.next_entry().await.unwrap().is_none());
        }
        let error = fs::read_dir("/nowhere").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = fs::read_dir("/dev/null").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADirectory);
    });
}

#[test]
fn what_an_entry_knows() {
    run(async || {
        let dir = TempDir::new();
        dir.file("file", "12345");
        std::fs::create_dir(dir.join("dir")).unwrap();
        std::os::unix::fs::symlink("file", dir.join("link")).unwrap();
        let mut entries = fs::read_dir(dir.path()).await.unwrap();
        for entry in collect(&mut entries).await {
            let name = entry.file_name();
            let path = dir.path().join(&name);
            assert_eq!(entry.path(), path);
            let std = std::fs::read_dir(dir.path()).unwrap();
            let std = std
                .map(Result::unwrap)
                .find(|std| std.file_name() == name)
                .unwrap();
            assert_eq!(entry.ino(), std.ino());
            assert_eq!(entry.file_type().await.unwrap(), std.file_type().unwrap());
            let metadata = entry.metadata().await.unwrap();
            assert_eq!(metadata.len(), std.metadata().unwrap().len());
            assert_eq!(metadata.is_symlink(), name == "link");
            std::fs::rename(&path, dir.join("moved")).unwrap();
            let error = entry.metadata().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            // The type came with the listing.
            entry.file_type().await.unwrap();
            std::fs::rename(dir.join("moved"), &path).unwrap();
        }
    });
}

#[test]
fn a_directory_that_changes_while_it_is_read() {
    run(async || {
        let dir = TempDir::new();
        let stays: HashSet<_> = (0..200).map(|i| format!("stays-{i}")).collect();
        for name in &stays {
            dir.file(name, "");
        }
        for i in 0..200 {
            dir.file(&format!("goes-{i}"), "");
        }
        let mut entries = fs::read_dir(dir.path()).await.unwrap();
        let mut seen = Vec::new();
        let mut i = 0;
        while let Some(entry) = entries.next_entry().await.unwrap() {
            seen.push(entry.file_name().into_string().unwrap());
            if i < 200 {
                std::fs::remove_file(dir.join(&format!("goes-{i}"))).unwrap();
                dir.file(&format!("comes-{i}"), "");
                i += 1;
            }
        }
        let unique: HashSet<_> = seen.iter().cloned().collect();
        assert_eq!(unique.len(), seen.len(), "an entry was listed twice");
        assert!(stays.is_subset(&unique), "an entry that stayed was missed");
    });
}

#[test]
fn a_directory_that_is_removed_while_it_is_read() {
    run(async || {
        let dir = TempDir::new();
        let inner = dir.join("inner");
        std::fs::create_dir(&inner).unwrap();
        for i in 0..100 {
            std::fs::write(inner.join(i.to_string()), "").unwrap();
        }
        let mut entries = fs::read_dir(&inner).await.unwrap();
        entries.next_entry().await.unwrap().unwrap();
        std::fs::remove_dir_all(&inner).unwrap();
        let rest = collect(&mut entries).await;
        assert!(rest.len() < 100);
        for entry in rest {
            assert_eq!(
                entry.metadata().await.unwrap_err().kind(),
                ErrorKind::NotFound
            );
        }
    });
}

#[test]
fn a_cancelled_listing_loses_no_entry() {
    run(async || {
        let dir = TempDir::new();
        for i in 0..100 {
            dir.file(&i.to_string(), "");
        }
        let mut entries = fs::read_dir(dir.path()).await.unwrap();
        let mut names = HashSet::new();
        loop {
            // Polled once and dropped, at any stage of a chunk.
            if let std::task::Poll::Ready(entry) = poll_once(&mut Box::pin(entries.next_entry())) {
                match entry.unwrap() {
                    Some(entry) => assert!(names.insert(entry.file_name())),
                    None => break,
                }
            }
            gmp_executor::task::yield_now().await;
        }
        assert_eq!(names.len(), 100);
    });
}

#[test]
fn listing_yields_now_and_then() {
    // Entries that are there already cost budget: a long listing does not keep others from running.
    common::watched(|| {
        common::current_thread().block_on(async {
            let dir = TempDir::new();
            for i in 0..31 {
                dir.file(&i.to_string(), "");
            }
            let mut listings = Vec::new();
            for _ in 0..10 {
                listings.push(fs::read_dir(dir.path()).await.unwrap());
            }
            let denied = poll_fn(|cx| {
                let mut denied = false;
                for listing in &mut listings {
                    for _ in 0..31 {
                        denied |= Pin::new(&mut *listing).poll_next_entry(cx).is_pending();
                    }
                }
                std::task::Poll::Ready(denied)
            });
            assert!(denied.await);
        });
    });
}

#[test]
fn paths_of_every_kind() {
    run(async || {
        let dir = TempDir::new();
        dir.file("file", "x");
        let text = dir.path().to_str().unwrap().to_owned() + "/file";
        assert!(fs::try_exists(&text).await.unwrap());
        assert!(fs::try_exists(text.as_str()).await.unwrap());
        assert!(fs::try_exists(Path::new(&text)).await.unwrap());
        assert!(
            fs::try_exists(std::ffi::OsString::from(&text))
                .await
                .unwrap()
        );
        let error = fs::metadata("nul\0byte").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn auto_traits() {
    fn check<T: Send + Sync + Unpin>() {}
    fn future<T: Send>(_: T) {}
    check::<ReadDir>();
    check::<DirEntry>();
    check::<DirBuilder>();
    future(fs::read("x"));
    future(fs::write("x", "y"));
    future(fs::read_dir("x"));
    let _ = |entries: &'static mut ReadDir| future(entries.next_entry());
}
