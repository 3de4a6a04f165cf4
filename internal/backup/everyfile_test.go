package backup

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// small makes a backup that has a file in each of its places, and returns every file of its directory.
func small(t *testing.T, d Directory) (m *Manifest, files []string) {
	t.Helper()
	s, err := OpenStore(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	m = example()
	n := 0
	next := func() Object {
		n++
		return kept(t, s, fmt.Sprintf("file %d", n))
	}
	m.Groups[0].Files = []File{{"metadata/app.sql", next()}, {"data/app/part.bin", next()}}
	for i := range m.Streams {
		m.Streams[i].Chunks = []Chunk{{1, next()}, {2, next()}}
		m.Streams[i].Transient = []Chunk{{3, next()}}
	}
	m.Ledger = next()
	if err := s.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(string(d), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && e.Name() != lockName {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) != n+1 {
		t.Fatalf("%d objects and the manifest are %d files, %v", n, len(files), err)
	}
	return m, files
}

// verified reads the backup as a new process does: its manifest, and every file that this names.
func verified(t *testing.T, d Directory) error {
	t.Helper()
	s := ReadStore(d)
	m, err := s.Newest(t.Context())
	switch {
	case err != nil:
		return err
	case m == nil:
		return fs.ErrNotExist
	}
	return s.Check(t.Context(), m, nil)
}

// Whatever happens to a file of a backup is found, whichever it is: a bit of it flipped, any of a small one and one in each byte of the manifest, a byte cut off or added, emptied, removed.
func TestEveryFileOfABackupIsChecked(t *testing.T) {
	t.Parallel()
	d := Directory(t.TempDir())
	_, files := small(t, d)
	for _, path := range files {
		name, _ := filepath.Rel(string(d), path)
		t.Run(filepath.Ext(name)+" "+name, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil || len(text) == 0 {
				t.Fatalf("%d bytes, %v", len(text), err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			put := func(data []byte) {
				t.Helper()
				_ = os.Chmod(path, 0o600) // objects are read-only
				if err := os.WriteFile(path, data, info.Mode()); err != nil {
					t.Fatal(err)
				}
			}
			found := func(what string) {
				t.Helper()
				err := verified(t, d)
				if err == nil {
					t.Errorf("%s: nothing was found", what)
				} else if strings.HasPrefix(name, objectsDir) && !strings.Contains(err.Error(), filepath.Base(name)) {
					t.Errorf("%s: another file is named: %v", what, err)
				}
			}
			step := 1
			if len(text) > 100 {
				step = 9 // one bit of each byte, another one of the next
			}
			for bit := 0; bit < 8*len(text); bit += step {
				text[bit/8] ^= 1 << (bit % 8)
				put(text)
				found(fmt.Sprintf("bit %d of byte %d", bit%8, bit/8))
				text[bit/8] ^= 1 << (bit % 8)
			}
			put(text[:len(text)-1])
			found("cut")
			put(append(text[:len(text):len(text)], '\n'))
			found("longer")
			put(nil)
			found("emptied")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			found("removed")
			put(text)
			if err := verified(t, d); err != nil {
				t.Fatalf("as it was: %v", err)
			}
		})
	}
}

// A file that a backup shares with an older one is found in both, and one that only the older one has leaves the newer one whole.
func TestSharedFileOfBackups(t *testing.T) {
	t.Parallel()
	d := Directory(t.TempDir())
	old, _ := small(t, d)
	s := opened(t, d)
	newer := example()
	newer.Point = old.Point.Add(time.Hour)
	newer.Ledger = old.Ledger
	if err := s.Commit(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(d.At(old.Groups[0].Files[0].name())); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context(), newer, nil); err != nil {
		t.Errorf("the newer one: %v", err)
	}
	if err := s.Check(t.Context(), old, nil); err == nil {
		t.Error("the older one lacks a file")
	}
	if err := os.Remove(d.At(old.Ledger.name())); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context(), newer, nil); err == nil || !strings.Contains(err.Error(), "the ledger") {
		t.Errorf("without the ledger: %v", err)
	}
}
