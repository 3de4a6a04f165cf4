package spool

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

const (
	ackedName = "acks"
	// maxAckedFile is when acks is rewritten: some 4,000 marks.
	maxAckedFile = 256 << 10
)

// ackedUpTo is up to which seq each stream is settled: as said, and as known on
// disk. Its fields are the Spool's, under its mutex; the file is the syncing
// goroutine's alone.
type ackedUpTo struct {
	said    map[Stream]uint64
	durable map[Stream]uint64
	found   map[Stream]uint64 // on disk when the spool was opened
	dirty   map[Stream]bool

	path  string
	file  *os.File
	bytes int64
}

// load reads the file; damage is passed over.
func (m *ackedUpTo) load(path string) (bad []*Damage, err error) {
	*m = ackedUpTo{said: map[Stream]uint64{}, durable: map[Stream]uint64{}, found: map[Stream]uint64{}, dirty: map[Stream]bool{}, path: path}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	s := &scanner{r: f, salt: ackedSalt, size: info.Size(), placeless: true}
	for {
		body, err := s.next()
		var d *Damage
		switch {
		case errors.Is(err, io.EOF):
			return bad, nil
		case errors.As(err, &d):
			d.File = path
			if !d.Torn { // a torn mark is a kill, and no loss
				bad = append(bad, d)
			}
		case err != nil:
			return bad, err
		case body[0] == whatAcked:
			if of, seq, ok := parseAcked(body); ok {
				m.said[of] = max(m.said[of], seq)
				m.durable[of], m.found[of] = m.said[of], m.said[of]
			}
		}
	}
}

// set says that a stream is settled up to seq, and returns how far what is
// durable is behind.
func (m *ackedUpTo) set(of Stream, seq uint64) (behind uint64) {
	if seq > m.said[of] {
		m.said[of] = seq
		m.dirty[of] = true
	}
	return m.said[of] - min(m.durable[of], m.said[of])
}

// encode returns the marks to append, and what they will make durable: all of them
// when the file is to be rewritten.
func (m *ackedUpTo) encode() (b []byte, seqs map[Stream]uint64, rewrite bool) {
	if len(m.dirty) == 0 {
		return nil, nil, false
	}
	seqs = map[Stream]uint64{}
	// file is nil until the first write, and after forget. What load read may have a torn end, and
	// nothing is appended after that. A write that failed sets bytes above the bound (Spool.sync).
	rewrite = m.file == nil || m.bytes > maxAckedFile
	for of, seq := range m.said {
		if rewrite || m.dirty[of] {
			b = appendAcked(b, of, seq)
			seqs[of] = seq
		}
	}
	return b, seqs, rewrite
}

// write makes b durable: after what there is, or instead of it.
func (m *ackedUpTo) write(dir string, b []byte, rewrite bool) error {
	if !rewrite {
		if _, err := m.file.WriteAt(b, m.bytes); err != nil {
			return err
		}
		m.bytes += int64(len(b))
		return m.file.Sync()
	}
	f, err := os.OpenFile(m.path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync()); err == nil {
		err = os.Rename(m.path+".new", m.path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	old := m.file
	m.file, m.bytes = f, int64(len(b))
	if old != nil {
		return old.Close()
	}
	return nil
}

// forget drops the file: no record is left that it speaks of.
func (m *ackedUpTo) forget() error {
	err := m.close()
	m.said, m.found, m.dirty = map[Stream]uint64{}, map[Stream]uint64{}, map[Stream]bool{}
	if removed := os.Remove(m.path); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

func (m *ackedUpTo) close() error {
	if m.file == nil {
		return nil
	}
	err := m.file.Close()
	m.file, m.bytes = nil, 0
	return err
}
