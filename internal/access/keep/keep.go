package keep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/access"
)

const (
	// look is how often the file is looked at, unless Config says otherwise. What changed is taken
	// at the look after, so within two of them.
	look = time.Second / 2
	// maxWaiting bounds the answers to wrong secrets that wait at once. Those beyond it do not
	// wait: a flood of them holds this many requests, and no more.
	maxWaiting = 256
	// maxFile bounds it: access.MaxTokens of 4 KiB.
	maxFile = access.MaxTokens * 4 << 10
)

// Config says where tokens are written. Each may be empty.
type Config struct {
	// File is one as access.Parse reads it. It may appear later.
	File string
	// Text is such a file's text, from the environment.
	Text string
	// Local is the file of the local token, which Open makes where it is not there.
	Local string
	// Every is how often the file is looked at. Default half a second.
	Every time.Duration
	// OnError hears why a file is not taken; nil: it is not heard.
	OnError func(error)
}

// Keeper knows the tokens. It is safe for concurrent use.
type Keeper struct {
	cfg    Config
	fixed  []access.Token // of the environment, and the local one
	tokens atomic.Pointer[access.Tokens]

	taken   atomic.Pointer[fs.FileInfo] // the file as it was taken; nil in it: it was not there
	last    fs.FileInfo                 // of Run alone: as it was at the last look
	trouble string                      // of Run alone

	waiting atomic.Int64 // answers to wrong secrets

	mu       sync.Mutex
	failures access.Failures
}

// same reports whether two looks saw one version of a file, with one mode.
func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}

// Open reads all tokens. A file that is broken is an error.
func Open(cfg Config) (*Keeper, error) {
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	cfg.Every = cmp.Or(cfg.Every, look)
	k := &Keeper{cfg: cfg}
	if cfg.Text != "" {
		some, err := access.Parse([]byte(cfg.Text))
		if err != nil {
			return nil, fmt.Errorf("the tokens of the environment: %w", err)
		}
		k.fixed = some
	}
	if cfg.Local != "" {
		secret, err := local(cfg.Local)
		if err != nil {
			return nil, err
		}
		t, err := access.Local(secret)
		if err != nil {
			return nil, fmt.Errorf("the local token in %s: %w; remove the file, a new one is made at the next start", cfg.Local, err)
		}
		k.fixed = append(k.fixed, t)
	}
	k.tokens.Store(access.NewTokens(k.fixed))
	k.taken.Store(new(fs.FileInfo))
	if err := k.see(); err != nil {
		return k, err
	}
	return k, k.take()
}

// Run looks at the file until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	t := time.NewTicker(k.cfg.Every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		before := k.last
		err := k.see()
		if err == nil && !same(before, k.last) {
			continue // one that is being written is a part of itself: with fewer tokens, or one without its end
		}
		if err == nil {
			err = k.take()
		}
		if err != nil && err.Error() != k.trouble {
			k.cfg.OnError(fmt.Errorf("%w; the tokens that were read before stay valid", err))
		}
		if k.trouble = ""; err != nil {
			k.trouble = err.Error()
		}
	}
}

// see looks at the file.
func (k *Keeper) see() error {
	info, err := k.stat()
	if err != nil {
		return fmt.Errorf("the file of tokens: %w", err)
	}
	k.last = info
	return nil
}

// stat is the file as it is now; nil: it is not there.
func (k *Keeper) stat() (fs.FileInfo, error) {
	if k.cfg.File == "" {
		return nil, nil
	}
	info, err := os.Stat(k.cfg.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// behind reports whether the file is another than the one that was taken.
func (k *Keeper) behind() bool {
	info, err := k.stat()
	return err == nil && !same(*k.taken.Load(), info)
}

// take takes the file where it is another than the one that was taken. One that is gone has no
// tokens.
func (k *Keeper) take() error {
	if same(*k.taken.Load(), k.last) {
		return nil
	}
	some, err := ReadFile(k.cfg.File)
	if err != nil {
		return err
	}
	k.tokens.Store(access.NewTokens(k.fixed, some))
	took := k.last
	k.taken.Store(&took)
	return nil
}

// Tokens returns those that are valid now.
func (k *Keeper) Tokens() *access.Tokens { return k.tokens.Load() }

// Authenticate returns who asks: by the secret, else by the certificate. Of a peer that tries
// secrets too often it waits before it answers, until ctx ends; maxWaiting do. A certificate was
// verified before, so nothing is learnt by trying some.
func (k *Keeper) Authenticate(ctx context.Context, a *access.Asked) (p *access.Principal, why string, err error) {
	a.At = time.Now()
	if p, why, err = k.ask(a); err != nil && k.behind() {
		p, why, err = k.askAgain(ctx, a)
	}
	if err == nil || certified(a) {
		return p, why, err
	}
	k.mu.Lock()
	wait := k.failures.Add(a.Peer, a.At)
	k.mu.Unlock()
	defer k.waiting.Add(-1)
	if k.waiting.Add(1) <= maxWaiting && wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return nil, why, err
}

// askAgain asks once the file that was changed is taken: a token is used as soon as it was added. It waits three looks at
// most, for a broken file is never taken, and maxWaiting do at once.
func (k *Keeper) askAgain(ctx context.Context, a *access.Asked) (p *access.Principal, why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*k.cfg.Every)
	defer cancel()
	t := time.NewTicker(k.cfg.Every / 8)
	defer t.Stop()
	defer k.waiting.Add(-1)
	if k.waiting.Add(1) <= maxWaiting {
		for k.behind() {
			select {
			case <-t.C:
				continue
			case <-ctx.Done():
			}
			break
		}
	}
	return k.ask(a)
}

// ask is Authenticate without a wait.
func (k *Keeper) ask(a *access.Asked) (p *access.Principal, why string, err error) {
	if certified(a) {
		p, why, err = k.Tokens().Certified(a)
	} else {
		p, why, err = k.Tokens().Authenticate(a)
	}
	if err != nil {
		return nil, why, err
	}
	p.Now = func() (*access.Principal, error) {
		again := *a
		again.At = time.Now()
		p, _, err := k.ask(&again)
		return p, err
	}
	return p, "", nil
}

// certified reports whether a certificate says who asks, and no secret.
func certified(a *access.Asked) bool { return !access.Formed(a.Secret) && a.Subject != "" }
