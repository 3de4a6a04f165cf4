package spool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const topicName = "topic.json"

// Topic is what KeepTopic kept last; nil when it never did.
func (s *Spool) Topic() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(s.dir, topicName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// KeepTopic keeps the topic's descriptor, all of it or none, for a start
// without a server.
func (s *Spool) KeepTopic(text []byte) error {
	path := filepath.Join(s.dir, topicName)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(path+".new", path), syncDir(s.dir))
}

// LeaveTopic keeps a topic's descriptor in the directory of its spool where there is none yet, for a first start
// without a server. It takes no lock: a spool that is in use has one.
func LeaveTopic(dir string, text []byte) error {
	path := filepath.Join(dir, topicName)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, topicName+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Link(f.Name(), path) // never over one that appeared meanwhile
	}
	_ = os.Remove(f.Name())
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return errors.Join(err, syncDir(dir))
}
