package faults

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Journal is what one producer process was told, written by that process. Its lines are
//
//	r <n>   numbers up to n may have been used
//	s <n>   told that n is stored
//	g <n>   told that n was given up: it may be stored all the same
//
// Numbers count from 1 inside a journal; the file's name is the journal's own number.
type Journal struct {
	f        *os.File
	reserved uint64

	mu      sync.Mutex
	stored  []uint64
	givenUp []uint64
	wake    chan struct{}
	ended   chan struct{}
	err     error
}

// reserveStep is how many numbers one line reserves.
const reserveStep = 1 << 14

// OpenJournal begins the journal of one process.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal{f: f, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go j.write()
	return j, nil
}

// Reserve makes sure that n may be used. Only one goroutine reserves.
func (j *Journal) Reserve(n uint64) error {
	if n <= j.reserved {
		return nil
	}
	if _, err := fmt.Fprintf(j.f, "r %d\n", n+reserveStep-1); err != nil {
		return err
	}
	if err := j.f.Sync(); err != nil {
		return err
	}
	j.reserved = n + reserveStep - 1
	return nil
}

// Ack notes what the producer was told of n.
func (j *Journal) Ack(n uint64, err error) {
	j.mu.Lock()
	if err == nil {
		j.stored = append(j.stored, n)
	} else {
		j.givenUp = append(j.givenUp, n)
	}
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// write brings what is settled to disk, as much at a time as came meanwhile.
func (j *Journal) write() {
	defer close(j.ended)
	var buf []byte
	for range j.wake {
		j.mu.Lock()
		stored, givenUp := j.stored, j.givenUp
		j.stored, j.givenUp = nil, nil
		j.mu.Unlock()
		buf = buf[:0]
		for _, n := range stored {
			buf = append(strconv.AppendUint(append(buf, "s "...), n, 10), '\n')
		}
		for _, n := range givenUp {
			buf = append(strconv.AppendUint(append(buf, "g "...), n, 10), '\n')
		}
		if _, err := j.f.Write(buf); err != nil {
			j.err = err
			return
		}
		if err := j.f.Sync(); err != nil {
			j.err = err
			return
		}
	}
}

// Close brings the rest to disk. Nothing is settled afterwards.
func (j *Journal) Close() error {
	select {
	case j.wake <- struct{}{}:
	default:
	}
	close(j.wake)
	<-j.ended
	if err := j.f.Close(); j.err == nil {
		j.err = err
	}
	return j.err
}

// Told is what a journal says once its process is gone.
type Told struct {
	Reserved uint64
	Stored   Set
	GivenUp  Set
}

// ReadJournals reads all journals of a directory, by their numbers.
func ReadJournals(dir string) (map[uint64]*Told, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	if err != nil {
		return nil, err
	}
	all := map[uint64]*Told{}
	for _, path := range files {
		number, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), ".journal"), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("faults: %s is not a journal's name: %w", path, err)
		}
		if all[number], err = readJournal(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func readJournal(path string) (*Told, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := &Told{}
	whole := strings.LastIndexByte(string(data), '\n') + 1 // a killed process may leave half a line
	lines := bufio.NewScanner(strings.NewReader(string(data[:whole])))
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseUint(rest, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("faults: %s has the line %q", path, lines.Text())
		}
		switch word {
		case "r":
			t.Reserved = max(t.Reserved, n)
		case "s":
			t.Stored.Add(n)
		case "g":
			t.GivenUp.Add(n)
		default:
			return nil, fmt.Errorf("faults: %s has the line %q", path, lines.Text())
		}
	}
	return t, lines.Err()
}
