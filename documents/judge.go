package documents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// Op is one change of a Batch: a create, an update, or a removal.
type Op struct {
	Create, Remove bool
	ID             string
	Path           string // of a create
	If             Condition
	Body           []byte
}

// check refuses what no state of the document could make right, and makes the body compact.
func (c *Collection) check(op *Op) error {
	if err := document.CheckID(c.topic.Documents, op.ID); err != nil {
		return fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	if err := document.CheckPath(op.Path); err != nil {
		return fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	if op.Remove {
		return nil
	}
	body, err := compact(op.Body, c.topic.Documents.MaxBytes)
	if err != nil {
		return fmt.Errorf("%w: document %q: %w", schemas.ErrRequest, op.ID, err)
	}
	op.Body = body
	return nil
}

// compact checks that a body is one JSON object within a limit, and removes its spaces.
func compact(body []byte, limit int) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, body); err != nil {
		return nil, fmt.Errorf("%w: it is not JSON: %w", document.ErrBody, err)
	}
	switch n := out.Len(); {
	case n == 0 || out.Bytes()[0] != '{':
		return nil, fmt.Errorf("%w: it must be one JSON object", document.ErrBody)
	case n > limit:
		return nil, fmt.Errorf("%w: it has %d bytes, the limit is %d", document.ErrBody, n, limit)
	}
	return out.Bytes(), nil
}

// judge decides what version follows last (nil: none) by a change, at a time.
func judge(t *schemas.Topic, last *document.Record, op *Op, by string, now int64) (*document.Record, error) {
	r := &document.Record{Topic: t.Name, Lane: strconv.Itoa(document.Lane(t, op.ID)), ID: op.ID, Path: op.Path, By: by, Body: op.Body, Op: schemas.OpStored, Version: 1, Created: now, Changed: now}
	there := last != nil && !last.Removed()
	if last != nil {
		r.Version, r.Changed = last.Version+1, max(now, last.Changed+1)
		r.Created = r.Changed
	}
	switch {
	case op.Create && there:
		return nil, fmt.Errorf("%w: %q, version %d", ErrExists, op.ID, last.Version)
	case !op.Create && !there:
		return nil, fmt.Errorf("%w: %q", ErrNotFound, op.ID)
	case !op.Create && op.If != Always && op.If.version != last.Version:
		return nil, &VersionError{ID: op.ID, Want: op.If.version, Have: last.Version}
	case op.Remove:
		r.Op, r.Body, r.Path, r.Created, r.User = schemas.OpRemoved, nil, last.Path, last.Created, last.User
		return r, nil
	case !op.Create:
		r.Op, r.Path, r.Created = schemas.OpUpdated, last.Path, last.Created
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
