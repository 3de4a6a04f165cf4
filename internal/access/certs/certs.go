package certs

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// look is how often the files are looked at, unless Config says otherwise. What changed is taken at the look after, so within two
	// of them.
	look = time.Second / 2
	// maxFile bounds each: a CA's file with some thousand certificates.
	maxFile = 4 << 20
)

// Config names the files, in PEM. Cert and Key are required.
type Config struct {
	Cert, Key string
	// ClientCA signs the certificates of clients; empty: none is asked for.
	ClientCA string
	// Require refuses a client without such a certificate.
	Require bool
	// Every is how often the files are looked at. Default half a second.
	Every time.Duration
	// OnError hears why renewed files are not taken; nil: it is not heard.
	OnError func(error)
}

// Files follows the files until it is closed. It is safe for concurrent use.
type Files struct {
	cfg    Config
	now    atomic.Pointer[tls.Config]
	closed chan struct{}
	ended  chan struct{}
	once   sync.Once

	// Of Open and then of follow alone: the files as they were taken, and as they were at the last look.
	taken, last stamps
}

// stamps tell one version of the files from another.
type stamps [3]struct {
	changed time.Time
	size    int64
}

// Open reads the files and follows them.
func Open(cfg Config) (*Files, error) {
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	cfg.Every = cmp.Or(cfg.Every, look)
	f := &Files{cfg: cfg, closed: make(chan struct{}), ended: make(chan struct{})}
	now, err := f.look()
	if err == nil {
		err = f.take(now)
	}
	if err != nil {
		return nil, err
	}
	go f.follow()
	return f, nil
}

// Close ends the look at the files. Connections and TLS go on with what was read.
func (f *Files) Close() {
	f.once.Do(func() { close(f.closed) })
	<-f.ended
}

// TLS is that of a server whose every connection gets what was read last.
func (f *Files) TLS() *tls.Config {
	c := f.now.Load().Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.now.Load(), nil }
	return c
}

// Ends returns when the certificate that is in use ends.
func (f *Files) Ends() time.Time { return f.now.Load().Certificates[0].Leaf.NotAfter }

func (f *Files) follow() {
	defer close(f.ended)
	t := time.NewTicker(f.cfg.Every)
	defer t.Stop()
	var first, said string // what was wrong at the last look, and what was said of it
	for {
		select {
		case <-f.closed:
			return
		case <-t.C:
		}
		now, err := f.look()
		if err == nil && now != f.last { // a file is written by now, or is to come
			f.last = now
			continue
		}
		if err == nil && now != f.taken {
			err = f.take(now)
		}
		if err == nil {
			first, said = "", ""
			continue
		}
		if first == err.Error() && said != first { // the second look: one file is replaced before the other
			said = first
			f.cfg.OnError(fmt.Errorf("%w; what was read before stays in use", err))
		}
		first = err.Error()
	}
}

func (f *Files) names() [len(stamps{})]string {
	return [...]string{f.cfg.Cert, f.cfg.Key, f.cfg.ClientCA}
}

// look returns which versions of the files are there.
func (f *Files) look() (now stamps, err error) {
	var errs []error
	for i, name := range f.names() {
		if name == "" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		now[i].changed, now[i].size = info.ModTime(), info.Size()
	}
	return now, errors.Join(errs...)
}

// take takes the files, of which a look found these versions.
func (f *Files) take(now stamps) (err error) {
	var text [len(now)][]byte
	for i, name := range f.names() {
		if name == "" {
			continue
		}
		if text[i], err = readAll(name); err != nil {
			return err
		}
	}
	c, err := configOf(&texts{text[0], text[1], text[2]}, f.cfg.Require, time.Now())
	if err != nil {
		return fmt.Errorf("%s and %s: %w", f.cfg.Cert, f.cfg.Key, err)
	}
	f.taken, f.last = now, now
	f.now.Store(c)
	return nil
}

func readAll(name string) ([]byte, error) {
	r, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for who writes it
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	if info, err := r.Stat(); err != nil || info.Mode()&os.ModeNamedPipe != 0 {
		return nil, errors.Join(err, fmt.Errorf("%s is a pipe: it is read again and again, so a file is needed", name))
	}
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(text) > maxFile {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return text, err
}
