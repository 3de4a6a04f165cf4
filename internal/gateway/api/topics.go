package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/maintenance/declare"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// maxSooner bounds the shards that an answer names; their sums are of all.
const maxSooner = 100

// Bodies that declare a topic: what a client says of one.
type (
	topicRequest struct {
		schemas.Topic
	}
	topicField struct {
		schemas.Field
	}
	topicRotation struct {
		schemas.Rotation
	}
)

// declared is the topic as a client declares it, without what Almanac alone writes.
func (q *topicRequest) declared(name string) (schemas.Topic, error) {
	t := q.Topic
	if t.Name != "" && t.Name != name {
		return t, fmt.Errorf("%w: the topic of the path is %q, and the body's %q", schemas.ErrRequest, name, t.Name)
	}
	t.Name, t.Version, t.First, t.Lifted = name, 0, 0, nil
	for i := range t.Fields {
		t.Fields[i].Since = 0
	}
	for i := range t.PII {
		t.PII[i].Since, t.PII[i].Until = 0, 0
	}
	return t, nil
}

// declareTopic declares a topic, or says what that would do.
func (a *API) declareTopic(w http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	dry, agreed := p.yes("dry_run"), p.yes("yes")
	if err := p.end(); err != nil {
		return nil, err
	}
	var q topicRequest
	if err := body(w, r, &q); err != nil {
		return nil, err
	}
	want, err := q.declared(r.PathValue("topic"))
	if err != nil {
		return nil, err
	}
	cfg := declare.Config{Registry: a.cfg.Registry}
	if db := a.cfg.Reader.DB(); db != nil {
		cfg.Storage = db.Storage
	}
	var plan *declare.Plan
	if dry {
		cfg.Count = a.countEvents
		plan, err = declare.Foresee(r.Context(), cfg, want)
	} else {
		plan, err = declare.Apply(r.Context(), cfg, want, agreed)
	}
	if err != nil {
		return nil, declareRefusal(err)
	}
	if n := len(plan.Sooner); n > maxSooner {
		plan.Sooner = plan.Sooner[:maxSooner]
		plan.Notes = append(plan.Notes, fmt.Sprintf("sooner has the first %d of %d", maxSooner, n))
	}
	return plan, nil
}

func (a *API) countEvents(ctx context.Context, topic, where string, from time.Time) (uint64, error) {
	h, err := a.cfg.Reader.Histogram(ctx, query.HistogramRequest{Topic: topic, Where: where, From: from})
	if err != nil {
		return 0, err
	}
	return h.Count, nil
}

// declareErrors are the rules of declarations.
var declareErrors = rules{
	{registry.ErrRemoving, http.StatusConflict, "topic_removing", ""},
	{schemas.ErrTopicChange, http.StatusConflict, "unsupported_change", "GET of the topic says what it is"},
	{schemas.ErrTopic, http.StatusBadRequest, "bad_topic", ""},
}

func declareRefusal(err error) error {
	if loss := (*declare.LossError)(nil); errors.As(err, &loss) {
		return request.Refuse(http.StatusConflict, "events_would_go", loss.Error(), "send the request with yes if it is meant, or with dry_run to look")
	}
	if refused := declareErrors.of(err); refused != nil {
		return refused
	}
	return err
}

// addTopics adds topics, and their declarations.
func (a *API) addTopics(on routes) {
	on.serve(&operations.Topics, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		if err := paramsOf(r).end(); err != nil {
			return nil, err
		}
		topics, err := a.cfg.Registry.Topics(r.Context())
		return topicList{filled(a.visible(r, topics))}, err
	}))
	on.serve(&operations.Topic, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		if err := paramsOf(r).end(); err != nil {
			return nil, err
		}
		return a.cfg.Registry.Topic(r.Context(), r.PathValue("topic"))
	}))
	on.serve(&operations.DeclareTopic, a.read(a.declareTopic))
}
