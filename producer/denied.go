package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/nats-io/nats.go"
)

// A server answers nothing to a user who may not ask. It says so to the connection as a whole, and names the subject.

// deniedGrace is how long questions that the user may ask have to be answered, after one was denied.
const deniedGrace = time.Second

// hearDenials is an option of a connection, after the others: what is denied while the topic is read ends the reading.
func hearDenials(deny context.CancelCauseFunc) nats.Option {
	return func(o *nats.Options) error {
		then := o.AsyncErrorCB
		o.AsyncErrorCB = func(nc *nats.Conn, sub *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				err = fmt.Errorf("the user %s: %w; give it the lines of the user producer that `almanac config nats` prints", cmp.Or(userOf(nc), "without a name"), err)
				time.AfterFunc(deniedGrace, func() { deny(err) })
			}
			if then != nil {
				then(nc, sub, err)
			}
		}
		return nil
	}
}

// userOf is as whom a connection asks.
func userOf(nc *nats.Conn) string {
	if nc.Opts.User != "" {
		return nc.Opts.User
	}
	u, err := url.Parse(nc.ConnectedUrlRedacted())
	if err != nil || u.User == nil {
		return ""
	}
	return u.User.Username()
}

// unlessDenied is the error of a start, or what was denied during it.
func unlessDenied(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, nats.ErrPermissionViolation) {
		return fmt.Errorf("cannot read the topic: %w", cause)
	}
	return err
}
