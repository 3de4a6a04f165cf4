package timer

import (
	"net/http"
	"testing"
	"time"
)

func TestAnswers(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later := now.Add(time.Hour)
	policy := &Policy{Attempts: 3, Initial: time.Second, RetryOn: []int{409}}
	for _, c := range []struct {
		name, mode string
		status     int
		header     http.Header
		body       string
		want       Op // with a policy
		err        string
	}{
		{"ok", AnswerJSON, 200, nil, `{"ok":true}`, Done, ""},
		{"ok with more", AnswerJSON, 200, nil, ` {"ok":true,"x":1} `, Done, ""},
		{"not ok", AnswerJSON, 200, nil, `{"ok":false}`, Retry, ErrNotOK},
		{"next", AnswerJSON, 200, nil, `{"ok":false,"nextExecuteAt":"` + later.Format(time.RFC3339) + `"}`, Rescheduled, ""},
		{"next is not a time", AnswerJSON, 200, nil, `{"ok":false,"nextExecuteAt":"soon"}`, Retry, ErrNextTime},
		{"next in a century", AnswerJSON, 200, nil, `{"ok":false,"nextExecuteAt":"2126-01-01T00:00:00Z"}`, Retry, ErrNextTime},
		{"text", AnswerJSON, 200, nil, `fine`, Retry, ErrNotJSON},
		{"nothing", AnswerJSON, 200, nil, ``, Retry, ErrNotJSON},
		{"json without ok", AnswerJSON, 200, nil, `{}`, Retry, ErrNotJSON},
		{"201", AnswerJSON, 201, nil, `{"ok":true}`, Retry, ErrStatus},
		{"201 by status", "", 201, nil, ``, Done, ""},
		{"204 by status", AnswerStatus, 204, nil, ``, Done, ""},
		{"200 text by status", AnswerStatus, 200, nil, `fine`, Done, ""},
		{"302", "", 302, nil, ``, Retry, ErrRedirect},
		{"302 by status", AnswerStatus, 302, nil, ``, Retry, ErrRedirect},
		{"404", "", 404, nil, `{"ok":true}`, Failed, ErrStatus},
		{"408", "", 408, nil, ``, Retry, ErrStatus},
		{"425", AnswerJSON, 425, nil, ``, Retry, ErrStatus},
		{"429", "", 429, http.Header{"Retry-After": {"30"}}, ``, Retry, ErrStatus},
		{"409 in retry_on", "", 409, nil, ``, Retry, ErrStatus},
		{"410", "", 410, nil, ``, Failed, ErrStatus},
		{"500", "", 500, nil, ``, Retry, ErrStatus},
		{"500 by status", AnswerStatus, 500, nil, ``, Retry, ErrStatus},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Classify(c.mode, c.status, c.header, []byte(c.body), now.UnixNano())
			claimed := Record{Op: Firing, Revision: 4, Attempt: 1, First: now.UnixNano(), Due: now.UnixNano(), Changed: now.UnixNano()}
			next := Complete(&claimed, v, Call{Status: c.status, Error: v.Error}, policy, now.UnixNano(), 0.5)
			if next.Op != c.want || next.Call.Error != c.err {
				t.Errorf("%s, error %q; want %s, %q", next.Op, next.Call.Error, c.want, c.err)
			}
			switch next.Op {
			case Rescheduled:
				if next.Due != later.UnixNano() || next.Attempt != 0 || next.Revision != 5 || next.First != 0 {
					t.Errorf("rescheduled: %+v", next)
				}
			case Retry:
				if next.Attempt != 1 || next.Revision != 4 || next.Due <= now.UnixNano() {
					t.Errorf("retry: %+v", next)
				}
			}
			if next.Op == Retry { // without a policy there is one attempt
				if one := Complete(&claimed, v, Call{}, nil, now.UnixNano(), 0.5); one.Op != Failed {
					t.Errorf("without a policy: %s", one.Op)
				}
			}
		})
	}
	if got := retryAfter(later.Format(http.TimeFormat), now.UnixNano()); got != time.Hour {
		t.Errorf("Retry-After as a date: %s", got)
	}
}
