package streams

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// LastSeq returns the last sequence of a stream, by its leader.
func LastSeq(ctx context.Context, js jetstream.JetStream, stream string) (uint64, error) {
	info, err := Info(ctx, js, stream)
	if err != nil {
		return 0, err
	}
	return info.State.LastSeq, nil
}

// EndOf is a stream's end as its leader described it: the last sequence, and the time
// then. Every message up to there was stored by that time, unless the clock was set back.
func EndOf(info *jetstream.StreamInfo) schemas.Source {
	at := info.TimeStamp
	if last := info.State.LastTime; last.After(at) {
		at = last
	}
	return schemas.Source{Seq: info.State.LastSeq, Stored: at.UnixNano()}
}

// Subjects lists the subjects of a stream that match a filter, with how many
// messages each has. The server's list holds U+FFFD for bytes that are not UTF-8:
// what such subjects really are is read from the messages.
func Subjects(ctx context.Context, js jetstream.JetStream, stream, filter string) (map[string]uint64, error) {
	out := map[string]uint64{}
	for offset, total := 0, 1; offset < total; {
		page, err := Asked(about(ctx, js, "STREAM.INFO."+stream), js.Conn(), func(ctx context.Context) (*subjectsPage, error) { return askSubjects(ctx, js, stream, filter, offset) })
		if err != nil {
			return nil, fmt.Errorf("streams: subjects of %s: %w", stream, err)
		}
		maps.Copy(out, page.State.Subjects)
		total, offset = page.Total, offset+max(page.Limit, 1)
	}
	odd := map[string]bool{} // filters of what is not text
	for subject := range out {
		if strings.ContainsRune(subject, utf8.RuneError) {
			delete(out, subject)
			odd[schemas.FilterOf(subject)] = true
		}
	}
	for f := range odd {
		if _, err := Headers(ctx, js, stream, f, 1, func(m *Message) error {
			// The filter's * selects subjects that are text too; the list has those already.
			if schemas.FilterOf(m.Subject) == f {
				out[m.Subject]++
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// subjectsPage is a part of a stream's list of subjects, Limit of them at most.
type subjectsPage struct {
	Error *jetstream.APIError `json:"error"`
	Total int                 `json:"total"`
	Limit int                 `json:"limit"`
	State struct {
		Subjects map[string]uint64 `json:"subjects"`
	} `json:"state"`
}

// askSubjects reads one page. nats.go counts the names it was given: it would ask for
// ever where two subjects have the same name in JSON.
func askSubjects(ctx context.Context, js jetstream.JetStream, stream, filter string, offset int) (*subjectsPage, error) {
	data, err := json.Marshal(map[string]any{"subjects_filter": filter, "offset": offset})
	if err != nil {
		return nil, err
	}
	answer, err := js.Conn().RequestWithContext(ctx, apiSubject(js, "STREAM.INFO."+stream), data)
	if err != nil {
		return nil, err
	}
	var page subjectsPage
	switch err := json.Unmarshal(answer.Data, &page); {
	case err != nil:
		return nil, err
	case page.Error != nil && page.Error.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return nil, jetstream.ErrStreamNotFound
	case page.Error != nil:
		return nil, page.Error
	}
	return &page, nil
}

// Info describes a stream, by its leader.
func Info(ctx context.Context, js jetstream.JetStream, stream string) (*jetstream.StreamInfo, error) {
	info, err := Asked(about(ctx, js, "STREAM.INFO."+stream), js.Conn(), func(ctx context.Context) (*jetstream.StreamInfo, error) {
		s, err := js.Stream(ctx, stream)
		if err != nil {
			return nil, err
		}
		return s.CachedInfo(), led(js, s.CachedInfo())
	})
	if err != nil {
		return nil, fmt.Errorf("streams: %s: %w", stream, err)
	}
	return info, nil
}

// led returns an error where servers elect and a stream was described by a replica that knows no leader: of a group that lost its majority one that is
// left answers after some seconds, and what it has need not be all.
func led(js jetstream.JetStream, info *jetstream.StreamInfo) error {
	if info.Cluster != nil && info.Cluster.Leader == "" && schemas.Elects(js.Conn()) {
		return &jetstream.APIError{Code: 503, ErrorCode: codeNoLeader, Description: "stream " + info.Config.Name + " has no leader"}
	}
	return nil
}

// Open returns a stream's handle, by which it can be purged.
func Open(ctx context.Context, js jetstream.JetStream, stream string) (jetstream.Stream, error) {
	return Asked(about(ctx, js, "STREAM.INFO."+stream), js.Conn(), func(ctx context.Context) (jetstream.Stream, error) { return js.Stream(ctx, stream) })
}
