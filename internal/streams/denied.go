package streams

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A server answers nothing to who may not ask. It says so beside the answers, to the connection as a whole, and names the
// subject. Questions that say on which subject they ask (about) fail with it at once, or not at all. Of the others it is not known
// which was denied: what is still unanswered some time later fails with it.

// deniedGrace is how long what was asked rightly has to be answered, where it does not say on which subject it asks.
const deniedGrace = time.Second

// asking are the requests of this process that wait for an answer.
var asking = waiters{all: map[*waiter]bool{}}

type waiters struct {
	mu  sync.Mutex
	all map[*waiter]bool
}

type waiter struct {
	fail context.CancelCauseFunc
	on   asksOn
}

// asksOn is where a question is asked. Without a subject, that is not known; without a connection, neither.
type asksOn struct {
	nc      *nats.Conn
	subject string
}

// about says on which subject of JetStream's API the next question of ctx is asked.
func about(ctx context.Context, js jetstream.JetStream, tail string) context.Context {
	return context.WithValue(ctx, asksOn{}, asksOn{js.Conn(), apiSubject(js, tail)})
}

// over says over which connection the next question of ctx is asked, unless more is said already.
func over(ctx context.Context, nc *nats.Conn) context.Context {
	if _, said := ctx.Value(asksOn{}).(asksOn); said {
		return ctx
	}
	return context.WithValue(ctx, asksOn{}, asksOn{nc: nc})
}

// bounded is ctx for one question: for as long as NATS may be silent to it, and until it is denied. The caller calls done
// with the error of the question, which is then ErrDenied where it was denied.
func bounded(ctx context.Context, most time.Duration) (_ context.Context, done func(error) error) {
	timed, cancel := context.WithTimeout(ctx, most)
	asked, end := untilDenied(timed)
	return asked, func(err error) error {
		defer cancel()
		return end(err)
	}
}

// untilDenied is bounded for a question whose time is its caller's.
func untilDenied(ctx context.Context) (_ context.Context, done func(error) error) {
	denied, fail := context.WithCancelCause(ctx)
	on, _ := ctx.Value(asksOn{}).(asksOn)
	w := &waiter{fail, on}
	asking.mu.Lock()
	asking.all[w] = true
	asking.mu.Unlock()
	return denied, func(err error) error {
		asking.mu.Lock()
		delete(asking.all, w)
		asking.mu.Unlock()
		if cause := context.Cause(denied); err != nil && errors.Is(cause, ErrDenied) {
			err = cause
		}
		fail(nil)
		return err
	}
}

// deny fails what waits now and asks there. Where nothing does, it fails what may ask there and is not answered soon: questions that say only
// over which connection they ask, or not even that; and all of a connection, where it is not a subject of questions that was denied, but
// that on which the answers come.
func (w *waiters) deny(at asksOn, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var may []*waiter
	asked := false
	for one := range w.all {
		switch {
		case one.on == at && at.subject != "":
			one.fail(err)
			asked = true
		case one.on.nc != nil && one.on.nc != at.nc, one.on.subject != "" && at.subject != "": // of another connection, on another subject
		default:
			may = append(may, one)
		}
	}
	if asked {
		return
	}
	time.AfterFunc(deniedGrace, func() {
		for _, one := range may { // one that was answered meanwhile does not mind
			one.fail(err)
		}
	})
}

// hearDenials is an option of a connection, behind the others: it hears what is denied.
func hearDenials(o *nats.Options) error {
	then := o.AsyncErrorCB
	o.AsyncErrorCB = func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			_, what, _ := strings.Cut(err.Error(), ": ")
			_, what, _ = strings.Cut(what, ": ") // nats.go's own words, then the server's
			err = fmt.Errorf("%w: %s: %s; connect as a user that may, or give it the right: `almanac config nats` prints those of each part", ErrDenied, userOf(nc), what)
			asking.deny(asksOn{nc, deniedSubject(what)}, err)
		}
		if then != nil {
			then(nc, sub, err)
		}
	}
	return nil
}

// deniedSubject is the subject of a question that a server's words name: Permissions Violation for Publish to "a.b". Empty where it is
// one on which answers would come: Permissions Violation for Subscription to "a.b".
func deniedSubject(words string) string {
	_, subject, _ := strings.Cut(words, `for Publish to "`)
	subject, _, _ = strings.Cut(subject, `"`)
	return subject
}

// userOf is as whom a connection asks, in words.
func userOf(nc *nats.Conn) string {
	user := nc.Opts.User
	if user == "" {
		if u, err := url.Parse(nc.ConnectedUrlRedacted()); err == nil && u.User != nil {
			user = u.User.Username()
		}
	}
	if user == "" {
		return "a client without a user"
	}
	return "the user " + user
}
