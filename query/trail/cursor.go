package trail

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// place is where a page ended, and what the first page fixed.
type place struct {
	// At and ID are of the event below which the next page begins.
	At int64  `json:"at"`
	ID string `json:"id"`
	// Now is the clock by which relative times and open changes are read.
	Now int64 `json:"now"`
	// For is a digest of the request.
	For string `json:"for"`
}

// digest tells requests apart: a cursor goes on with its own.
func (r *Request) digest(where string) string {
	text, _ := json.Marshal([]any{r.Topic, r.filter(where), r.From, r.To, r.OpenAfter})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func (p place) encode() string {
	text, _ := json.Marshal(p)
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodePlace(cursor string) (p place, err error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		in := json.NewDecoder(strings.NewReader(string(text)))
		in.DisallowUnknownFields()
		err = in.Decode(&p)
	}
	if err == nil {
		_, err = schemas.ParseID(p.ID)
	}
	if err == nil && (p.At <= 0 || p.Now <= 0) {
		err = fmt.Errorf("it names the time %d", min(p.At, p.Now))
	}
	if err != nil {
		return p, fmt.Errorf("%w: %w: it is not one of a trail; give the last page's cursor as it was: %w", schemas.ErrRequest, ErrCursor, err)
	}
	return p, nil
}

// event is the place as an event to compare others with.
func (p place) event() *Event {
	id, _ := schemas.ParseID(p.ID) // decodePlace checked it
	return &Event{Time: time.Unix(0, p.At).UTC(), ID: id}
}
