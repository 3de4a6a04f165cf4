package api

import (
	"net/http"
	"slices"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// asked is a handler that is reached only by those who may do what an operation does. A read ends when they no longer may; what
// writes is brought to its end, so that its outcome is known.
func (a *API) asked(op *operations.Operation, h http.HandlerFunc) http.HandlerFunc {
	if a.cfg.Anyone {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request) {
		who := access.From(r.Context())
		if err := allowed(op, r, who); err != nil {
			request.Fail(w, r, who.Refused(err))
			return
		}
		r = r.WithContext(filter.WithLimit(r.Context(), who.Where))
		if op.Right.Action == access.Change {
			a.rated(who.Token, w, r, h)
			return
		}
		if op.Access != operations.Reads {
			h(w, r)
			return
		}
		ctx, stop := request.WhileAllowed(r.Context(), func(now *access.Principal) error { return stillAllowed(op, r, who, now) })
		defer stop()
		h(w, r.WithContext(ctx))
	}
}

// stillAllowed returns why who asks may not go on with a read. Where its row limit, or the topics of its SQL, are others by now, it asks again.
func stillAllowed(op *operations.Operation, r *http.Request, who, now *access.Principal) error {
	if now.Where != who.Where {
		return access.ErrUnauthenticated
	}
	if topics, everything := now.SQLTopics(); op.Right.Action == access.SQL && !everything {
		if was, all := who.SQLTopics(); all || !slices.Equal(was, topics) {
			return access.ErrUnauthenticated
		}
	}
	return allowed(op, r, now)
}

// allowed returns why who asks may not make a request.
func allowed(op *operations.Operation, r *http.Request, who *access.Principal) error {
	right := op.Right
	if who.Where != "" && right.Action != access.Open && op.Rows != operations.LimitedRows && op.Rows != operations.NoRows {
		return who.MayAll(right.Action, "")
	}
	switch right.Of {
	case operations.OfAll:
		return who.May(right.Action, "")
	case operations.OfSome:
		return who.MaySome(right.Action)
	case operations.OfNamed:
	}
	if topic := r.PathValue("topic"); topic != "" {
		return who.May(right.Action, topic)
	}
	topics := r.URL.Query()["topic"]
	if len(topics) == 0 {
		topics = []string{op.DefaultTopic()}
	}
	for _, topic := range topics {
		if err := who.May(right.Action, topic); err != nil {
			return err
		}
		// What receivers of alerts are told: clients read these timers, and change neither them nor their groups.
		if topic == schemas.TopicAlertCalls && (right.Action == access.Change || op == &operations.SetTimerGroup) {
			return &access.Denied{Name: who.Name, Action: right.Action, Topic: topic, Own: true}
		}
	}
	return nil
}

// may returns why who asks may not do an action on a topic, which a body names.
func (a *API) may(r *http.Request, action access.Action, topic string) error {
	if a.cfg.Anyone {
		return nil
	}
	who := access.From(r.Context())
	return who.Refused(who.May(action, topic))
}

// shows reports whether who asks may do an action on a topic, where an answer holds less for who may not.
func (a *API) shows(r *http.Request, action access.Action, topic string) bool {
	return a.cfg.Anyone || access.From(r.Context()).May(action, topic) == nil
}

// visible returns those topics that who asks may read.
func (a *API) visible(r *http.Request, all []schemas.Topic) []schemas.Topic {
	if a.cfg.Anyone {
		return all
	}
	var out []schemas.Topic
	for i := range all {
		if access.From(r.Context()).May(access.Read, all[i].Name) == nil {
			out = append(out, all[i])
		}
	}
	return out
}
