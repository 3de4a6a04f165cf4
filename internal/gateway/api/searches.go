package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

type searchList struct {
	Searches []registry.Search `json:"searches"`
}

// addSearches adds saved searches.
func (a *API) addSearches(on routes) {
	on.serve(&operations.SavedSearches, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		if err := paramsOf(r).end(); err != nil {
			return nil, err
		}
		all, err := a.cfg.Registry.Searches(r.Context())
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(s registry.Search) bool { return a.mayAll(r, access.Read, s.Topics) != nil })
		slices.SortFunc(all, func(x, y registry.Search) int { return strings.Compare(x.Name, y.Name) })
		return searchList{filled(all)}, nil
	}))
	on.serve(&operations.SaveSearch, a.read(func(w http.ResponseWriter, r *http.Request) (any, error) {
		if err := paramsOf(r).end(); err != nil {
			return nil, err
		}
		var s registry.Search
		if err := bodyWithin(w, r, registry.MaxSearchBytes, &s); err != nil {
			return nil, err
		}
		return &s, a.saveSearch(r, &s)
	}))
	on.serve(&operations.RemoveSearch, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		if err := paramsOf(r).end(); err != nil {
			return nil, err
		}
		name := r.PathValue("search")
		held, err := a.cfg.Registry.Search(r.Context(), name)
		if err == nil && a.mayAll(r, access.Save, held.Topics) == nil {
			err = a.cfg.Registry.ForgetSearch(r.Context(), name)
		} else if err == nil {
			err = registry.ErrNotFound // one that is not listed either
		}
		if errors.Is(err, registry.ErrNotFound) {
			return nil, request.Refuse(http.StatusNotFound, "unknown_search", fmt.Sprintf("there is no saved search %q", name), "GET /v1/searches lists them")
		}
		return status{http.StatusNoContent, nil}, err
	}))
}

// saveSearch writes a search that could be asked now.
func (a *API) saveSearch(r *http.Request, s *registry.Search) error {
	ctx := r.Context()
	if name := r.PathValue("search"); s.Name == "" {
		s.Name = name
	} else if s.Name != name {
		return fmt.Errorf("%w: the search of the path is %q, and the body's %q", schemas.ErrRequest, name, s.Name)
	}
	s.Topics = filled(s.Topics)
	s.SavedBy, s.SavedAt = "", time.Now().UTC().Truncate(time.Millisecond)
	if who := access.From(ctx); who != nil {
		s.SavedBy = who.Name
	}
	if err := s.Validate(); err != nil {
		return err
	}
	most := map[registry.SearchKind]int{registry.OfEvents: query.MaxSearchTopics, registry.OfCharts: registry.MaxChartTopics}[s.Kind]
	if n := len(s.Topics); n > most {
		return fmt.Errorf("%w: search %q: it has %d topics; the limit is %d", schemas.ErrRequest, s.Name, n, most)
	}
	if len(s.Topics) == 0 {
		if err := a.may(r, access.Save, ""); err != nil {
			return err
		}
	}
	for _, topic := range s.Topics {
		if err := a.may(r, access.Save, topic); err != nil {
			return err
		}
		t, err := a.cfg.Registry.Topic(ctx, topic)
		if err != nil {
			return err
		}
		if _, err := filter.ParseAt(s.Where, &t, s.SavedAt); err != nil {
			return fmt.Errorf("%w: %w", schemas.ErrRequest, err)
		}
	}
	all, err := a.cfg.Registry.Searches(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(held registry.Search) bool { return held.Name == s.Name })
	if at >= 0 && all[at].Kind != s.Kind {
		return request.Refuse(http.StatusConflict, "search_exists", fmt.Sprintf("%q is saved, and of another kind", s.Name), "save it under another name")
	}
	if at >= 0 && a.mayAll(r, access.Save, all[at].Topics) != nil {
		return request.Refuse(http.StatusConflict, "search_exists", fmt.Sprintf("a search %q of topics that this token may not read is there", s.Name), "save it under another name")
	}
	if at < 0 && len(all) >= registry.MaxSearches {
		return fmt.Errorf("%w: there are %d saved searches, as many as there may be: remove some", schemas.ErrRequest, len(all))
	}
	return a.cfg.Registry.SaveSearch(ctx, s)
}

// mayAll returns why who asks may not do an action on one of some topics; where there are none, on all that there are. It tells no
// one: that is for what was asked for.
func (a *API) mayAll(r *http.Request, action access.Action, topics []string) error {
	if a.cfg.Anyone {
		return nil
	}
	if len(topics) == 0 {
		return access.From(r.Context()).May(action, "")
	}
	for _, topic := range topics {
		if err := access.From(r.Context()).May(action, topic); err != nil {
			return err
		}
	}
	return nil
}
