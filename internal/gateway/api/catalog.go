package api

import (
	"net/http"

	"github.com/almanac-events/almanac/internal/operations"
)

// addCatalog adds shards, and what waits.
func (a *API) addCatalog(on routes) {
	on.serve(&operations.Shards, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		p := paramsOf(r)
		topic, month := p.text("topic"), p.text("month")
		if err := p.end(); err != nil {
			return nil, err
		}
		shards, err := a.cfg.Reader.Shards(r.Context(), topic, month)
		return shardList{filled(shards)}, err
	}))
	on.serve(&operations.Lag, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		p := paramsOf(r)
		topic := p.text("topic")
		if err := p.end(); err != nil {
			return nil, err
		}
		return a.cfg.Reader.Lag(r.Context(), topic)
	}))
	on.serve(&operations.Status, a.read(a.status))
}

// filled is a list that is [] and not null where it is empty.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
