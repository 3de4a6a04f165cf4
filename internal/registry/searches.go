package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/almanac-events/almanac/schemas"
)

// SearchKind is what a saved search asks for.
type SearchKind string

// The kinds of saved searches.
const (
	OfEvents SearchKind = ""
	OfCharts SearchKind = "charts" // a page of charts, which Shown has
)

// Search is what is asked of events, saved under a name.
type Search struct {
	Name string     `json:"name"`
	Kind SearchKind `json:"kind,omitempty"`
	// Topics are those that it reads. Charts may name none: a statement of SQL reads any topic.
	Topics []string `json:"topics"`
	// From, To and Where are as a search takes them.
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
	Where string `json:"where,omitempty"`
	// Shown is how the page shows what it finds, such as its columns. No server reads it.
	Shown map[string]string `json:"shown,omitempty"`
	// SavedBy is the name of the token that saved it.
	SavedBy string    `json:"saved_by,omitempty"`
	SavedAt time.Time `json:"saved_at,omitzero"`
}

// The bounds of saved searches: a list of all is one answer of 4 MB at most.
const (
	MaxSearches        = 500
	MaxSearchBytes     = 8 << 10
	MaxSearchNameBytes = 120
	MaxChartTopics     = 12 // of charts: as many as a page has charts
)

func (s *Search) key() string { return schemas.SearchKey(s.Name) }

// Validate refuses a search that is larger than one may be, or whose name cannot be asked for.
func (s *Search) Validate() error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: search %q: %s", schemas.ErrRequest, s.Name, fmt.Sprintf(format, a...))
	}
	switch {
	case strings.TrimSpace(s.Name) != s.Name || s.Name == "" || s.Name == "." || s.Name == "..": // a client takes dots out of a path
		return bad("the name is empty, has spaces at its ends, or is dots alone")
	case len(s.Name) > MaxSearchNameBytes:
		return bad("the name has %d bytes; the limit is %d", len(s.Name), MaxSearchNameBytes)
	case !utf8.ValidString(s.Name) || strings.ContainsFunc(s.Name, func(c rune) bool { return !unicode.IsPrint(c) }):
		return bad("the name has characters that cannot be seen")
	case s.Kind != OfEvents && s.Kind != OfCharts:
		return bad("its kind is %q; it is %q, or none", s.Kind, OfCharts)
	case len(s.Topics) == 0 && s.Kind == OfEvents:
		return bad("it names no topic")
	case s.Where != "" && s.Kind == OfCharts:
		return bad("each chart has a filter of its own: where is of a search")
	}
	if text, err := json.Marshal(s); err != nil || len(text) > MaxSearchBytes {
		return bad("it has %d bytes as JSON; the limit is %d", len(text), MaxSearchBytes)
	}
	return nil
}

// Searches lists the saved searches, in no order.
func (r *Registry) Searches(ctx context.Context) ([]Search, error) {
	return list[Search](ctx, r, schemas.SearchKeys)
}

// Search reads one: ErrNotFound where there is none.
func (r *Registry) Search(ctx context.Context, name string) (s Search, err error) {
	_, err = r.get(ctx, schemas.SearchKey(name), &s)
	return s, err
}

// SaveSearch writes a search over the one of its name.
func (r *Registry) SaveSearch(ctx context.Context, s *Search) error {
	if err := s.Validate(); err != nil {
		return err
	}
	return r.commit(ctx, &change{key: s.key(), any: true, v: s})
}

// ForgetSearch removes a search: ErrNotFound where there is none.
func (r *Registry) ForgetSearch(ctx context.Context, name string) error {
	if _, err := r.Search(ctx, name); err != nil {
		return err
	}
	return r.forgetCopied(ctx, schemas.SearchKey(name))
}
