package replay

import (
	"strings"
	"time"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// Order is how the shards of a replay are brought into one sequence.
type Order string

// The orders; see the package's text.
const (
	ByPosition Order = "position"
	ByTime     Order = "time"
)

// Spec is what a job replays. It is fixed when the job begins.
type Spec struct {
	Topic string `json:"topic"`
	// Shard restricts the replay to one; 0 is all.
	Shard schemas.Shard `json:"shard,omitempty"`
	// From and To bound the events' time in unix ns, both inclusive.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// FromPos and ToPos bound the positions of Shard, both inclusive; 0 is open.
	FromPos uint64 `json:"from_pos,omitempty"`
	ToPos   uint64 `json:"to_pos,omitempty"`
	// Where is a filter in its canonical spelling.
	Where string `json:"where,omitempty"`
	// Into is "-", a topic or a subject, and Kind which.
	Into  string `json:"into"`
	Kind  Kind   `json:"kind"`
	Order Order  `json:"order"`
	// UpTo is the last sequence of SHARDS that the job reads.
	UpTo uint64 `json:"up_to"`
}

// Kind is what a job replays into.
type Kind string

// The kinds of targets.
const (
	IntoWriter  Kind = "writer"
	IntoSubject Kind = "subject"
	IntoTopic   Kind = "topic"
)

// Request is a Spec as a caller writes it.
type Request struct {
	Topic string
	// Shard is 16 hex digits or a public name; empty is all.
	Shard          string
	From, To       time.Time // To is not in the range
	FromPos, ToPos uint64
	Where          string
	// Into is "-" or empty for the writer, a topic's name, or a subject (which has
	// a dot in it).
	Into  string
	Order Order
	// Again replays into a topic what a job of the same request replayed before: the
	// topic then has those events twice.
	Again bool
	// Now is the clock for relative times in Where.
	Now time.Time
}

// spec checks a request.
func (q *Request) spec(t *schemas.Topic) (Spec, *filter.Expr, error) {
	s := Spec{Topic: t.Name, FromPos: q.FromPos, ToPos: q.ToPos, Order: q.Order, Into: q.Into}
	var err error
	if s.From, s.To, err = schemas.Between(q.From, q.To); err != nil {
		return s, nil, refuse(nil, "%w", err)
	}
	if q.Shard != "" {
		id := q.Shard[strings.LastIndexByte(q.Shard, ':')+1:]
		if s.Shard, err = schemas.ParseShard(id); err != nil {
			return s, nil, refuse(nil, "%w; `almanac shards %s` lists them", err, t.Name)
		}
	}
	switch {
	case s.Shard == 0 && s.FromPos+s.ToPos > 0:
		return s, nil, refuse(nil, "positions count within a shard: name it with --shard")
	case s.ToPos > 0 && s.FromPos > s.ToPos:
		return s, nil, refuse(nil, "from position %d lies behind position %d", s.FromPos, s.ToPos)
	}
	where, err := filter.ParseAt(q.Where, t, q.Now)
	if err != nil {
		return s, nil, refuse(nil, "%w", err)
	}
	s.Where = where.String()
	s.Kind, err = kindOf(q.Into)
	return s, where, err
}

// kindOf says what a target is: a word is a topic, what has dots a subject.
func kindOf(into string) (Kind, error) {
	switch {
	case into == "" || into == "-":
		return IntoWriter, nil
	case !strings.ContainsAny(into, ".*>$"):
		if err := schemas.ValidateTopicName(into); err != nil {
			return "", refuse(ErrTarget, "%w; a topic's name is one word, a subject has a dot in it", err)
		}
		return IntoTopic, nil
	}
	return IntoSubject, checkSubject(into)
}

// checkSubject refuses subjects that are not a place for events.
func checkSubject(s string) error {
	for token := range strings.SplitSeq(s, ".") {
		switch {
		case token == "":
			return refuse(ErrTarget, "subject %q has an empty token", s)
		case token == "*" || token == ">":
			return refuse(ErrTarget, "subject %q has the wildcard %s; name one subject", s, token)
		}
	}
	if strings.ContainsAny(s, " \t\r\n\x00") || len(s) > maxSubjectBytes {
		return refuse(ErrTarget, "subject %q has a space or more than %d bytes", s, maxSubjectBytes)
	}
	first, _, _ := strings.Cut(s, ".")
	if strings.HasPrefix(first, "$") || strings.HasPrefix(first, "_INBOX") {
		return refuse(ErrTarget, "%s.> is NATS's own; choose another subject", first)
	}
	if schemas.OwnSubject(s) {
		return refuse(ErrTarget, "%s.> is Almanac's own, and what stands there it takes for frames; to add events to a topic, give its name", first)
	}
	return nil
}

// maxSubjectBytes keeps a subject and its headers far below a message's bounds.
const maxSubjectBytes = 256
