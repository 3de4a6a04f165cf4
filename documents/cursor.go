package documents

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// Lists that cursors are of.
const (
	verbList    = "list"
	verbChanged = "changed"
)

// cursor is where a page begins, and what list it is of.
type cursor struct {
	Verb  string `json:"v"`
	Topic string `json:"t"`
	Path  string `json:"p,omitempty"`
	All   bool   `json:"e,omitempty"`
	Below bool   `json:"d,omitempty"`
	// Where is the filter as it was given, Asked when the first page was asked for: times in
	// the filter such as -15m are from then.
	Where string `json:"w,omitempty"`
	Asked int64  `json:"q,omitempty"`
	From  int64  `json:"a"`
	To    int64  `json:"b"`
	// Ns and ID are the place of the last document before it.
	Ns int64  `json:"n"`
	ID string `json:"i"`
}

func (c *cursor) String() string {
	data, _ := json.Marshal(c) // it has no value that could fail
	return base64.RawURLEncoding.EncodeToString(data)
}

// parseCursor reads a cursor. Collection.begin compares the rest with what is asked for.
func parseCursor(s string) (*cursor, error) {
	data, err := base64.RawURLEncoding.DecodeString(s)
	c := &cursor{}
	if err == nil {
		err = json.Unmarshal(data, c)
	}
	if err == nil {
		err = document.CheckID(schemas.Documents{}, c.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the cursor is not one that a list returned: %w", schemas.ErrRequest, err)
	}
	return c, nil
}
