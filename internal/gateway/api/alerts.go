package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/alerts/evaluate"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/schemas"
)

type alertGroups struct {
	Groups []alerts.Group `json:"groups"`
}

// addAlerts adds alerts and their rules.
func (a *API) addAlerts(on routes) {
	m := alerts.New(a.cfg.Registry, a.cfg.Reader)
	on.serve(&operations.Alerts, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		if err := paramsOf(r).end(); err != nil {
			return nil, err
		}
		return m.List(r.Context())
	}))
	on.serve(&operations.AlertHistory, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		p := paramsOf(r)
		past := alerts.Past{From: p.time("from"), To: p.until("to"), Where: p.text("where"), Limit: p.number("limit"), Cursor: p.after()}
		if err := p.end(); err != nil {
			return nil, err
		}
		page, err := m.History(r.Context(), past)
		if err == nil {
			page.Cursor = p.next(page.Cursor)
		}
		return page, err
	}))
	on.serve(&operations.AlertGroups, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		if err := paramsOf(r).end(); err != nil {
			return nil, err
		}
		groups, err := m.Groups(r.Context())
		out := alertGroups{append([]alerts.Group{}, groups...)}
		if a.shows(r, access.Operate, "") {
			return out, err
		}
		for i := range out.Groups {
			out.Groups[i] = out.Groups[i].Hidden()
		}
		return out, err
	}))
	on.serve(&operations.SetAlertGroup, a.read(func(w http.ResponseWriter, r *http.Request) (any, error) {
		p := paramsOf(r)
		dry := p.yes("dry_run")
		if err := p.end(); err != nil {
			return nil, err
		}
		groups, err := groupOf(w, r)
		if err != nil {
			return nil, err
		}
		declare := m.Apply
		if dry {
			declare = m.Check
		}
		err = declare(r.Context(), groups)
		return groups[0], err
	}))
	// It reads all frames of its range, as a statement may, so it takes a place of those.
	on.serve(&operations.TryAlertGroup, a.within(a.sql, func(w http.ResponseWriter, r *http.Request) (any, error) {
		p := paramsOf(r)
		since := p.time("from")
		if err := p.end(); err != nil {
			return nil, err
		}
		if since.IsZero() {
			since = time.Now().Add(-triedFor)
		}
		groups, err := groupOf(w, r)
		if err != nil {
			return nil, err
		}
		if err := m.Check(r.Context(), groups); err != nil {
			return nil, err
		}
		return evaluate.Try(r.Context(), evaluate.Config{NATS: a.cfg.Registry.JetStream().Conn(), Registry: a.cfg.Registry, Reader: a.cfg.Reader}, groups, since)
	}))
	on.serve(&operations.RemoveAlertGroup, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		if err := paramsOf(r).end(); err != nil {
			return nil, err
		}
		err := m.Remove(r.Context(), r.PathValue("group"))
		if errors.Is(err, alerts.ErrUnknownGroup) {
			return nil, request.Refuse(http.StatusNotFound, "unknown_group", schemas.Text(err), "GET /v1/alerts/rules lists them")
		}
		return status{http.StatusNoContent, nil}, err
	}))
}

// triedFor is how far back rules are tried where the request does not say.
const triedFor = time.Hour

// groupOf is the group of rules that a request has, named by its path.
func groupOf(w http.ResponseWriter, r *http.Request) ([]alerts.Group, error) {
	var g alerts.Group
	if err := bodyWithin(w, r, alerts.MaxGroupBytes, &g); err != nil {
		return nil, err
	}
	if name := r.PathValue("group"); g.Name == "" {
		g.Name = name
	} else if g.Name != name {
		return nil, fmt.Errorf("%w: the group of the path is %q, and the body's %q", schemas.ErrRequest, name, g.Name)
	}
	return []alerts.Group{g}, nil
}
