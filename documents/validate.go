package documents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// Kind is what a change does.
type Kind string

// The kinds of changes. The zero value is an Update.
const (
	Create Kind = "create"
	Put    Kind = "put" // creates or replaces
	Update Kind = "update"
	Remove Kind = "remove"
)

// Op is one change.
type Op struct {
	Kind Kind
	ID   string // empty, of a create: one is generated
	// Path is that of a document which the change creates. One that is there must be under it
	// (*PathError), unless Path is empty and In is not set.
	Path string
	// In says that Path counts also where it is empty.
	In bool
	// Created is when a document that the change creates was created elsewhere, not after now;
	// zero: now.
	Created time.Time
	If      Condition
	Body    []byte
	// Lock is the token of a lock on the id that the writer holds; 0: the write does not
	// go by one. Where the lock was lost, nothing is written (*LockError).
	Lock uint64
	// Unlock releases the lock with the write; else the write renews it.
	Unlock bool
}

// Change is an Op as JSON has it.
type Change struct {
	Op        Kind            `json:"op"`
	ID        string          `json:"id"`
	Path      *string         `json:"path"`
	Created   time.Time       `json:"created"`
	IfVersion ordinal         `json:"if_version"`
	Body      json.RawMessage `json:"body"`
	Lock      ordinal         `json:"lock"`
	Unlock    bool            `json:"unlock"`
}

// ordinal is a version or a token in JSON: 0 and null are not left out ones, and would make a
// write that is not guarded.
type ordinal uint64

// UnmarshalJSON implements json.Unmarshaler.
func (o *ordinal) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || n == 0 {
		return fmt.Errorf("%.40q is not a version or the token of a lock: leave it out, or give a whole number from 1 on", text)
	}
	*o = ordinal(n)
	return nil
}

// Parse returns the Op.
func (c *Change) Parse() (Op, error) {
	op := Op{Kind: c.Op, ID: c.ID, Created: c.Created, If: Condition{uint64(c.IfVersion)}, Body: c.Body, Lock: uint64(c.Lock), Unlock: c.Unlock}
	if c.Path != nil {
		op.Path, op.In = *c.Path, true
	}
	switch c.Op {
	case Create, Put, Update, Remove:
	default:
		return op, fmt.Errorf("%w: op is %q, it must be create, put, update or remove", schemas.ErrRequest, c.Op)
	}
	return op, nil
}

// check refuses what no state of the document could make right, and makes the body compact.
func (c *Collection) check(op *Op) error {
	if op.ID != "" || op.Kind != Create {
		if err := c.checkID(op.ID); err != nil {
			return err
		}
	}
	if err := document.CheckPath(op.Path); err != nil {
		return fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	switch op.Kind {
	case "":
		op.Kind = Update
	case Create, Put, Update, Remove:
	default:
		return fmt.Errorf("%w: document %q: a change is of kind %q, it must be %s, %s, %s or %s", schemas.ErrRequest, op.ID, op.Kind, Create, Put, Update, Remove)
	}
	switch {
	case op.Unlock && op.Lock == 0:
		return fmt.Errorf("%w: document %q: a write that releases a lock must name its token", schemas.ErrRequest, op.ID)
	case op.Kind == Create && op.If != Always:
		return fmt.Errorf("%w: document %q: a create does not expect a version", schemas.ErrRequest, op.ID)
	case op.Kind == Put && op.If != Always:
		return fmt.Errorf("%w: document %q: a put does not expect a version; an update does", schemas.ErrRequest, op.ID)
	case !op.Created.IsZero() && op.Kind != Create && op.Kind != Put:
		return fmt.Errorf("%w: document %q: a time of creation is given to a document that is created; others keep theirs", schemas.ErrRequest, op.ID)
	case !op.Created.IsZero() && (op.Created.Unix() <= 0 || op.Created.Year() > lastYear):
		return fmt.Errorf("%w: document %q: created is %s, it must be after 1970 and not after now", schemas.ErrRequest, op.ID, op.Created.Format(time.RFC3339))
	}
	if op.Kind == Remove {
		return nil
	}
	body, err := compact(op.Body, c.topic.Documents.MaxBytes)
	if err != nil {
		return fmt.Errorf("%w: document %q: %w", schemas.ErrRequest, op.ID, err)
	}
	op.Body = body
	return nil
}

// lastYear is the last that fits in nanoseconds since 1970.
const lastYear = 2261

// compact checks that a body is one JSON object within a limit, and removes its spaces.
func compact(body []byte, limit int) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, body); err != nil {
		return nil, fmt.Errorf("%w: it is not JSON: %w", document.ErrBody, err)
	}
	switch n := out.Len(); {
	case !utf8.Valid(out.Bytes()):
		return nil, fmt.Errorf("%w: it is not UTF-8, and who reads it as JSON would refuse it", document.ErrBody)
	case n == 0 || out.Bytes()[0] != '{':
		return nil, fmt.Errorf("%w: it must be one JSON object", document.ErrBody)
	case n > limit:
		return nil, fmt.Errorf("%w: it has %d bytes, the limit is %d", document.ErrBody, n, limit)
	}
	return out.Bytes(), nil
}

// validate decides what version follows last (nil: none) by a change, at a time.
func validate(t *schemas.Topic, last *document.Record, op *Op, by string, now int64) (*document.Record, error) {
	r := &document.Record{Topic: t.Name, First: t.First, Lane: strconv.Itoa(document.Lane(t, op.ID)), ID: op.ID, Path: op.Path, By: by, Body: op.Body, Op: schemas.OpStored, Version: 1, Created: now, Changed: now}
	there := last != nil && !last.Removed()
	create := op.Kind == Create || op.Kind == Put && !there
	if last != nil {
		r.Version, r.Changed = last.Version+1, schemas.ChangedAfter(last.Changed, now)
		r.Created = r.Changed
	}
	if create && !op.Created.IsZero() {
		if r.Created = op.Created.UnixNano(); r.Created > r.Changed {
			return nil, fmt.Errorf("%w: document %q: created is %s, which is %s after the time of the server", schemas.ErrRequest, op.ID, op.Created.UTC().Format(time.RFC3339Nano), time.Duration(r.Created-r.Changed))
		}
	}
	switch {
	case op.Kind == Create && there:
		return nil, fmt.Errorf("%w: %q, version %d", ErrExists, op.ID, last.Version)
	case !create && !there:
		return nil, fmt.Errorf("%w: %q", ErrNotFound, op.ID)
	case !create && last.Path != op.Path && (op.In || op.Path != ""):
		return nil, &PathError{ID: op.ID, Want: op.Path, Have: last.Path}
	case !create && op.If != Always && op.If.version != last.Version:
		return nil, &VersionError{ID: op.ID, Want: op.If.version, Have: last.Version}
	case op.Kind == Remove:
		r.Op, r.Body, r.Path, r.Created, r.User = schemas.OpRemoved, nil, last.Path, min(last.Created, r.Changed), last.User
		return r, nil
	case !create:
		r.Op, r.Path, r.Created = schemas.OpUpdated, last.Path, min(last.Created, r.Changed)
	}
	r.User = userOf(op.Body, t.Documents.UserField)
	return r, nil
}

// userOf is whose data a body is: the text, or the number as it is written, under the
// topic's user_field. A field a.b is the member b of a where the body has no member "a.b".
func userOf(body []byte, field string) string {
	var top map[string]json.RawMessage
	if field == "" || json.Unmarshal(body, &top) != nil {
		return ""
	}
	value, there := top[field]
	if head, rest, dotted := strings.Cut(field, "."); !there && dotted {
		return userOf(top[head], rest)
	}
	var user string
	if json.Unmarshal(value, &user) == nil {
		return user
	}
	var n json.Number
	if json.Unmarshal(value, &n) != nil {
		return ""
	}
	return n.String()
}
