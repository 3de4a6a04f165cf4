package spool

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

func open(t *testing.T, dir string, o Options) *Spool {
	t.Helper()
	o.Sync = time.Millisecond
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func record(producer string, lane int, seq uint64, n int) *Record {
	return &Record{
		Topic: "app", Month: 202611, Lane: lane, Payload: make([]byte, n),
		Head: schemas.Frame{Producer: producer, Seq: seq, Rows: 3, Schema: 1},
	}
}

func fill(t *testing.T, s *Spool, producer string, from, to uint64, n int) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		if _, err := s.Append(record(producer, 0, seq, n)); err != nil {
			t.Fatal(err)
		}
	}
}

// seqs reads everything there is.
func seqs(t *testing.T, s *Spool) (out []uint64, bad int) {
	t.Helper()
	for {
		r, err := s.Next()
		switch {
		case errors.Is(err, io.EOF):
			return out, bad
		case errors.Is(err, ErrDamaged):
			bad++
		case err != nil:
			t.Fatal(err)
		default:
			out = append(out, r.Head.Seq)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	const patience = 2 * time.Minute
	late := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func files(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	must(t, err)
	return names
}

func same(got []uint64, from, to uint64) bool {
	if uint64(len(got)) != to-from+1 {
		return false
	}
	for i, seq := range got {
		if seq != from+uint64(i) {
			return false
		}
	}
	return true
}

func TestReopenGoesOnBehindTheMark(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{SegmentBytes: 1000})
	fill(t, s, "p", 1, 50, 100)
	of := Stream{"p", 0}
	s.Ack(of, 20)
	eventually(t, "the mark is durable", func() bool { return s.Durable(of) == 20 })
	must(t, s.Close())

	s = open(t, dir, Options{SegmentBytes: 1000})
	if st := s.Stats(); st.Frames != 50 || st.Events != 150 {
		t.Fatalf("%+v", st)
	}
	got, bad := seqs(t, s)
	if !same(got, 21, 50) || bad != 0 || s.Durable(of) != 20 {
		t.Fatalf("%v, %d bad", got, bad)
	}
	if st := s.Stats(); st.Frames != 30 || st.Events != 90 {
		t.Fatalf("%+v", st)
	}
	for range 30 {
		s.Acked(3)
	}
	s.Ack(of, 50)
	eventually(t, "the files are deleted", func() bool {
		return len(files(t, dir, "*.spool")) == 0 && len(files(t, dir, "acks")) == 0 && s.Stats() == Stats{}
	})
	fill(t, s, "p", 51, 55, 100)
	if got, _ := seqs(t, s); !same(got, 51, 55) {
		t.Fatalf("%v", got)
	}
	must(t, s.Close())
}

// A kill in the middle of a record: its beginning is cut, and counted.
func TestTornTailIsCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	fill(t, s, "p", 1, 3, 100)
	name := files(t, dir, "*.spool")[0]
	whole, err := os.ReadFile(name)
	must(t, err)
	must(t, s.Close())
	each := len(whole) / 3
	for cut := len(whole) - each + 1; cut < len(whole); cut += 13 {
		must(t, os.WriteFile(name, whole[:cut], 0o600))
		s := open(t, dir, Options{})
		got, bad := seqs(t, s)
		if st := s.Stats(); !same(got, 1, 2) || bad != 0 || st.Torn != 1 || st.Corrupt != 0 || st.Frames != 2 || len(s.Found()) != 1 {
			t.Fatalf("cut at %d: %v, %d bad, %+v", cut, got, bad, st)
		}
		fill(t, s, "q", 7, 8, 100) // goes to a file of its own
		must(t, s.Close())
		for _, other := range files(t, dir, "*.spool") {
			if other != name {
				must(t, os.Remove(other))
			}
		}
	}
}

// A record that was changed is passed over, named, and its file put aside.
func TestChangedRecordIsPassedOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{SegmentBytes: 1000})
	fill(t, s, "p", 1, 40, 100)
	must(t, s.Close())
	name := files(t, dir, "*.spool")[1]
	b, err := os.ReadFile(name)
	must(t, err)
	b[len(b)/2] ^= 0x10
	must(t, os.WriteFile(name, b, 0o600))

	s = open(t, dir, Options{SegmentBytes: 1000})
	got, bad := seqs(t, s)
	if len(got) != 39 || bad != 1 || s.Stats().Corrupt != 1 {
		t.Fatalf("%v, %d bad, %+v", got, bad, s.Stats())
	}
	s.Ack(Stream{"p", 0}, 40)
	eventually(t, "only the damaged file is left", func() bool {
		return len(files(t, dir, "*.spool")) == 0 && len(files(t, dir, "*.damaged")) == 1 && s.Stats().Bytes == int64(len(b))
	})
	if st := s.Stats(); st.Frames != 0 {
		t.Fatalf("%+v", st)
	}
	must(t, s.Close())
}

func TestBoundAndLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{MaxBytes: MinBytes})
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) {
		t.Fatalf("a second one: %v", err)
	}
	var err error
	n := uint64(0)
	for ; err == nil; n++ {
		_, err = s.Append(record("p", 0, n+1, 100_000))
	}
	n--
	if !errors.Is(err, ErrFull) || s.Stats().Bytes > MinBytes || s.Stats().Frames != n {
		t.Fatalf("after %d: %v, %+v", n, err, s.Stats())
	}
	if got, _ := seqs(t, s); !same(got, 1, n) {
		t.Fatalf("%v", got)
	}
	s.Ack(Stream{"p", 0}, n/2)
	eventually(t, "there is room again", func() bool {
		_, err := s.Append(record("p", 0, n+1, 100_000))
		return err == nil
	})
	must(t, s.Close())
	if _, err := Open(filepath.Join(dir, "small"), Options{MaxBytes: 1}); err == nil {
		t.Fatal("a bound of one byte")
	}
	must(t, open(t, dir, Options{MaxBytes: MinBytes}).Close())
}

// Damage in acks costs a repetition, never a frame.
func TestChangedMark(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, Options{})
	fill(t, s, "p", 1, 30, 10)
	for _, seq := range []uint64{10, 20} {
		s.Ack(Stream{"p", 0}, seq)
		eventually(t, "durable", func() bool { return s.Durable(Stream{"p", 0}) == seq })
	}
	must(t, s.Close())
	name := filepath.Join(dir, ackedName)
	b, err := os.ReadFile(name)
	must(t, err)
	b[len(b)-1] ^= 1
	must(t, os.WriteFile(name, b, 0o600))
	s = open(t, dir, Options{})
	if got, _ := seqs(t, s); !same(got, 11, 30) || s.Stats().Corrupt != 1 {
		t.Fatalf("%v, %+v", got, s.Stats())
	}
	must(t, s.Close())
}

// A settled segment that cannot be deleted is found again by the next process: the
// marks that spare sending it again outlive it.
func TestMarksOutliveSegments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	faults := make(chan error, 16)
	s := open(t, dir, Options{Fault: func(err error) { faults <- err }})
	fill(t, s, "a", 1, 3, 100)
	eventually(t, "records are durable", func() bool { return s.Safe() == 3 })
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	aside := filepath.Join(t.TempDir(), "segment")
	must(t, os.Rename(names[0], aside))
	must(t, os.MkdirAll(filepath.Join(names[0], "x"), 0o700)) // which no Remove takes
	f, err := os.Open(aside)
	must(t, err)
	s.mu.Lock()
	s.reading, s.scan = f, scanner{r: f, salt: s.segments[0].salt}
	s.mu.Unlock()
	if got, _ := seqs(t, s); len(got) != 3 {
		t.Fatal(got)
	}
	s.Ack(Stream{"a", 0}, 3)
	<-faults
	// Emptied once more, this time without trouble.
	fill(t, s, "a", 4, 4, 100)
	seqs(t, s)
	s.Ack(Stream{"a", 0}, 4)
	eventually(t, "everything is settled on disk", func() bool { return s.Durable(Stream{"a", 0}) == 4 })
	must(t, s.Close())
	must(t, os.RemoveAll(names[0]))
	must(t, os.Rename(aside, names[0]))
	s = open(t, dir, Options{})
	if got, bad := seqs(t, s); len(got) != 0 || bad != 0 {
		t.Errorf("%v are sent again, %d bad", got, bad)
	}
	must(t, s.Close())
}
