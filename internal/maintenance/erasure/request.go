package erasure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// Request names events of a topic: those of any of the users that match the
// filter and lie in the time range. At least one of users, filter and range must
// be given.
type Request struct {
	Topic string
	Users []string
	Where string
	// From (inclusive) and To (exclusive) bound the events' time; zero is open.
	From, To time.Time
	// Reason is kept with the erasure: who asked, and why.
	Reason string
	// By is the name of the token that asked over HTTP; empty without one.
	By string
}

// MaxUsers bounds the users of one erasure, and MaxReasonBytes what is said of it.
const (
	MaxUsers       = filter.MaxList
	MaxReasonBytes = 1024
)

// compile checks a request against its topic.
func (x *Eraser) compile(ctx context.Context, req Request, now time.Time) (ledger.Erasure, error) {
	topic, err := x.cfg.Registry.Topic(ctx, req.Topic)
	if err != nil {
		if schemas.Reason(err) != "" {
			err = fmt.Errorf("%w: %w", ErrRequest, err)
		}
		return ledger.Erasure{}, err
	}
	if req.Users, err = namesInEvents(req.Users, &topic, x.cfg.PrivacyKey); err != nil {
		return ledger.Erasure{}, err
	}
	return compile(req, &topic, now)
}

// namesInEvents returns what user_id may be in events of the users: as given, and hashed where
// the topic hashes it.
func namesInEvents(users []string, topic *schemas.Topic, key []byte) (names []string, err error) {
	for _, u := range users {
		if u == "" {
			return users, nil // compile refuses it
		}
		more, err := privacy.UserNames(topic, u, key)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRequest, err)
		}
		names = append(names, more...)
	}
	return names, nil
}

func compile(req Request, topic *schemas.Topic, now time.Time) (ledger.Erasure, error) {
	e := ledger.Erasure{
		Topic: req.Topic, To: math.MaxInt64, Schema: topic.Version, Reason: req.Reason, By: req.By,
		State: ledger.Waiting, CreatedAt: now.UTC(), Front: topic.Front(),
	}
	no := func(format string, a ...any) (ledger.Erasure, error) {
		return e, fmt.Errorf("%w: %s", ErrRequest, fmt.Sprintf(format, a...))
	}
	users := slices.Compact(slices.Sorted(slices.Values(req.Users)))
	switch {
	case len(users) > MaxUsers:
		return no("%d users, the limit is %d; make several erasures of it", len(users), MaxUsers)
	case slices.Contains(users, ""):
		return no("a user is empty; for events without one say --where \"user_id = ''\"")
	case len(req.Reason) > MaxReasonBytes:
		return no("the reason has %d bytes, the limit is %d", len(req.Reason), MaxReasonBytes)
	case len(users) == 0 && strings.TrimSpace(req.Where) == "" && req.From.IsZero() && req.To.IsZero():
		return no("no user, no filter and no time: that would be all of topic %q. Give --user, --where, or --from and --to", req.Topic)
	}
	first, last, err := schemas.Between(req.From, req.To)
	if err != nil {
		return no("%v", err)
	}
	e.From, e.To = max(first, 0), last
	where, err := filter.ParseAt(req.Where, topic, now)
	if err != nil {
		return e, errors.Join(ErrRequest, err)
	}
	e.Users, e.Where = users, where.String()
	if e.Cond, e.Params, err = condition(users, where); err != nil {
		return e, err
	}
	return e, nil
}

// condition is users and filter as SQL. Where an event is stored is not known of
// one that is in a stream, so a filter may not ask for it.
func condition(users []string, where *filter.Expr) (string, map[string]string, error) {
	cond, params := where.SQL()
	for _, col := range []string{schemas.ColShard, schemas.ColPos} {
		if strings.Contains(cond, "`"+col+"`") {
			return "", nil, fmt.Errorf("%w: the filter names %s, which an event gets only when it is routed; use times, users and attributes", ErrRequest, col)
		}
	}
	if len(users) > 0 {
		name := fmt.Sprintf("p%d", len(params)+1)
		cond = ledger.OfUsers(name, cond)
		params[name] = filter.ParamArray(users, true)
	}
	return cond, params, nil
}
