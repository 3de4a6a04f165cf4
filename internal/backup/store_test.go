package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/almanac-events/almanac/internal/backup/buckettest"
	"github.com/almanac-events/almanac/schemas"
)

// tried is a place that a test damages.
type tried struct {
	Place
	damage func(name string, data []byte)
	lose   func(name string)
}

// tries is how often a test sends a request that fails.
const tries = 3

// bucketOf is a bucket with a prefix.
func bucketOf(t *testing.T, b *buckettest.Bucket) *Bucket {
	t.Helper()
	p, err := OpenBucket(BucketConfig{
		URL: BucketScheme + buckettest.Name + "/of/ours", Endpoint: b.URL, Region: "us-east-1",
		who: credentials.NewStaticV4(buckettest.AccessKey, buckettest.Secret, ""), tries: tries,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func triedDirectory(t *testing.T, d Directory) tried {
	remove := func(name string) {
		if err := os.Remove(d.At(name)); err != nil {
			t.Fatal(err)
		}
	}
	return tried{d, func(name string, data []byte) {
		remove(name)
		if err := os.WriteFile(d.At(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}, remove}
}

// everywhere runs a test on each kind of place.
func everywhere(t *testing.T, f func(t *testing.T, at tried)) {
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		f(t, triedDirectory(t, Directory(t.TempDir())))
	})
	t.Run("link to a directory", func(t *testing.T) {
		t.Parallel()
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(t.TempDir(), link); err != nil {
			t.Fatal(err)
		}
		f(t, triedDirectory(t, Directory(link)))
	})
	t.Run("bucket", func(t *testing.T) {
		t.Parallel()
		b := buckettest.Start(t)
		p := bucketOf(t, b)
		p.lease.lasts = time.Hour
		f(t, tried{p, func(name string, data []byte) { b.Write(p.key(name), data) }, func(name string) { b.Remove(p.key(name)) }})
	})
}

func opened(t *testing.T, p Place) *Store {
	t.Helper()
	s, err := OpenStore(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
	return s
}

func kept(t *testing.T, s *Store, text string) Object {
	t.Helper()
	o, err := s.Put(t.Context(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// committed is a backup with two files.
func committed(t *testing.T, s *Store, hour int, shared, o Object) *Manifest {
	t.Helper()
	m := example()
	m.Point = m.Point.Add(time.Duration(hour) * time.Hour)
	m.Groups[0].Files = []File{{"a", shared}, {"b", o}}
	m.Ledger = shared
	for i := range m.Streams {
		m.Streams[i].Chunks = []Chunk{{1, o}}
	}
	if err := s.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// A backup that --keep removes while it is read is said to be removed, and not damaged; one of which a file is missing is damaged.
func TestABackupIsRemovedMeanwhile(t *testing.T) {
	everywhere(t, func(t *testing.T, at tried) {
		ctx := t.Context()
		s := opened(t, at)
		shared, own, first, second := kept(t, s, "shared"), kept(t, s, "own"), kept(t, s, "first"), kept(t, s, "second")
		old := committed(t, s, 1, own, first)
		newest := committed(t, s, 2, shared, second)
		reader := ReadStore(at)
		err := reader.Check(ctx, old, func(int64) { // after the first file
			if _, err := s.Keep(ctx, 1); err != nil {
				t.Error(err)
			}
		})
		if !errors.Is(err, ErrRemoved) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), old.Name()) {
			t.Errorf("removed while it was read: %v", err)
		}
		month, _ := schemas.ParseMonth("2026-11")
		for what, read := range map[string]func() error{
			"its manifest":      func() error { _, err := reader.Manifest(ctx, old.Name()); return err },
			"its ledger":        func() error { _, err := reader.Ledger(ctx, old); return err },
			"one of its topics": func() error { return Only{"app"}.Check(ctx, reader, old) },
			"one month of it":   func() error { return Only(nil).CheckMonth(ctx, reader, old, month) },
		} {
			if err := read(); !errors.Is(err, ErrRemoved) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "nothing was restored. Restore a newer one") {
				t.Errorf("%s, once it was removed: %v", what, err)
			}
		}
		at.lose(second.name())
		if err := reader.Check(ctx, newest, nil); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrRemoved) {
			t.Errorf("without one file: %v", err)
		}
	})
}

// A store names the object that differs, and keeps what the newest backups have. Another process finds all of it.
func TestStore(t *testing.T) {
	everywhere(t, func(t *testing.T, at tried) {
		ctx := t.Context()
		s, err := OpenStore(ctx, at)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "file")
		large := strings.Repeat("larger than one part of a file that goes up in parts", 1<<19)
		if err := os.WriteFile(file, []byte(large), 0o600); err != nil {
			t.Fatal(err)
		}
		inParts, err := s.PutFile(ctx, file)
		if err != nil || s.Added != int64(len(large)) {
			t.Fatalf("%d bytes, %v", s.Added, err)
		}
		shared, first, second, left := kept(t, s, "shared"), kept(t, s, "first"), kept(t, s, "second"), kept(t, s, "of a backup that was killed")
		if added := s.Added; kept(t, s, "shared") != shared || s.Added != added {
			t.Error("what is there was written again")
		}
		committed(t, s, 1, shared, first)
		newest := committed(t, s, 2, inParts, second)
		if m, err := s.Newest(ctx); err != nil || m.Name() != newest.Name() {
			t.Fatalf("the newest is %v, %v", m, err)
		}
		if err := s.Check(ctx, newest, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(ctx); err != nil {
			t.Fatal(err)
		}
		s = opened(t, at)
		if kept(t, s, "second"); s.Added != 0 {
			t.Error("what another process wrote was written again")
		}
		if removed, err := s.Keep(ctx, 1); err != nil || removed != 1 {
			t.Fatalf("removed %d, %v", removed, err)
		}
		var names []string
		if err := at.list(ctx, objectsDir, true, func(name string, _ int64) { names = append(names, name) }); err != nil {
			t.Fatal(err)
		}
		for o, want := range map[Object]bool{inParts: true, second: true, shared: false, first: false, left: false} {
			if s.has(o) != want || slices.Contains(names, o.name()) != want {
				t.Errorf("object %s is there: %t, %v", o.SHA256, s.has(o), names)
			}
		}
		// Committed again, since its ledger went with the first.
		shared = kept(t, s, "shared")
		newest = committed(t, s, 3, shared, second)
		reader := ReadStore(at)
		damaged := func(what string) {
			t.Helper()
			err := reader.Check(ctx, newest, nil)
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), second.SHA256) || !strings.Contains(err.Error(), "tables topics: b") {
				t.Errorf("%s: %v", what, err)
			}
			if _, err := reader.Read(ctx, second); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s, read: %v", what, err)
			}
		}
		at.damage(second.name(), []byte("secone"))
		damaged("a byte that differs")
		at.damage(second.name(), []byte("secon"))
		damaged("a file that was cut")
		at.damage(second.name(), []byte("second and more"))
		damaged("a longer file")
		at.lose(second.name())
		damaged("a file that is gone")
		text, err := newest.Encode()
		if err != nil {
			t.Fatal(err)
		}
		at.damage(newest.Name(), text[:len(text)-3])
		if _, err := reader.Newest(ctx); !errors.Is(err, ErrTorn) {
			t.Errorf("a manifest that was cut: %v", err)
		}
		if _, err := s.Keep(ctx, 1); !errors.Is(err, ErrTorn) {
			t.Errorf("what a manifest that was cut has is not known: %v", err)
		}
		at.damage(newest.Name(), bytes.Replace(text, fmt.Appendf(nil, "%s %d ", magic, Format), fmt.Appendf(nil, "%s %d ", magic, Format-1), 1))
		if removed, err := s.Keep(ctx, 1); !errors.Is(err, ErrFormat) || removed != 0 || strings.Contains(err.Error(), "from which nothing can be restored") {
			t.Errorf("what a backup of another format has is not known: %v", err)
		}
	})
}

// One process writes at a time, and after it another may.
func TestOneWriter(t *testing.T) {
	d := Directory(t.TempDir())
	s := opened(t, d)
	if _, err := OpenStore(t.Context(), d); !errors.Is(err, ErrBusy) {
		t.Errorf("a second process: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	opened(t, d)
}

// A place that does not list the backup that was just written is not believed: nothing is removed.
func TestKeepOfAPlaceThatListsNothing(t *testing.T) {
	t.Parallel()
	d := Directory(t.TempDir())
	s := opened(t, blind{d})
	o := kept(t, s, "x")
	committed(t, s, 1, o, o)
	for what, s := range map[string]*Store{"after a backup": s, "alone": {place: blind{d}, held: s.held, there: map[string]int64{o.SHA256: o.Size}}} {
		if removed, err := s.Keep(t.Context(), 1); !errors.Is(err, ErrTorn) || removed != 0 || !s.has(o) {
			t.Errorf("%s: %d backups removed, %v", what, removed, err)
		}
	}
	if _, err := os.Stat(d.At(o.name())); err != nil {
		t.Error(err)
	}
}

// blind lists nothing.
type blind struct{ Directory }

func (b blind) list(context.Context, string, bool, func(string, int64)) error { return nil }

// Among ClickHouse's own backups only the folders of copies and restores are removed, and backups do not lie there.
func TestFilesOfClickHouse(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := filepath.Join(root, "files")
	for _, name := range append(ours(), "almanac-prod", "almanac-2026.zip") {
		if err := os.MkdirAll(filepath.Join(files, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(filepath.Join(files, "almanac-prod"), link); err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{files, filepath.Join(files, "almanac-prod"), link} {
		if _, err := useFiles(files, ReadStore(Directory(in))); err == nil || !strings.Contains(err.Error(), "not in it") {
			t.Errorf("backups in %s: %v", in, err)
		}
	}
	release, err := useFiles(files, ReadStore(Directory(filepath.Join(root, "backups"))))
	if err != nil {
		t.Fatal(err)
	}
	release()
	left, err := os.ReadDir(files)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{lockName, "almanac-2026.zip", "almanac-prod"}) {
		t.Errorf("left are %v", names)
	}
}
