package syslog

import (
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A message has a minute from its first byte to its end: a connection that does not end it is closed, and what came is kept. Between two
// messages a sender may be silent for hours, whatever it ended the last one with.
func TestMessagesEnd(t *testing.T) {
	t.Parallel()
	type part struct {
		after time.Duration
		text  string
	}
	const whole = "<13>Nov 19 22:14:15 vm app: x\n"
	for name, c := range map[string]struct {
		parts    []part
		messages []string
		ends     time.Duration // after the last part; 0: it does not end within hours
	}{
		"one and silence":               {[]part{{0, whole}}, []string{"x"}, 0},
		"silence alone":                 {nil, nil, 0},
		"hours between two":             {[]part{{0, whole}, {5 * time.Hour, whole}}, []string{"x", "x"}, 0},
		"in parts, within a minute":     {[]part{{0, whole[:10]}, {59 * time.Second, whole[10:]}, {time.Hour, whole}}, []string{"x", "x"}, 0},
		"begun and not ended":           {[]part{{time.Hour, whole[:29]}}, []string{"x"}, time.Minute},
		"a byte each second":            {slices.Concat([]part{{0, whole[:28]}}, slices.Repeat([]part{{time.Second, "y"}}, 30)), []string{strings.Repeat("y", 30)}, 30 * time.Second},
		"a count and half of it":        {[]part{{0, "40 <13>Nov 19 22:14:15 vm app: x"}}, []string{"x"}, time.Minute},
		"the next one begun in a read":  {[]part{{0, whole + whole[:29]}}, []string{"x", "x"}, time.Minute},
		"the next one begins later":     {[]part{{0, whole}, {time.Hour, "<"}, {30 * time.Second, whole[1:29]}}, []string{"x", "x"}, 30 * time.Second},
		"a zero after each":             {[]part{{0, whole}, {time.Second, "\x00"}, {time.Hour, whole + "\r\n\x00"}}, []string{"x", "x"}, 0},
		"empty lines to show it is up":  {slices.Repeat([]part{{50 * time.Second, "\n"}}, 20), nil, 0},
		"a count, and newlines as well": {[]part{{0, "29 " + whole[:29] + "\n"}, {time.Hour, "29 " + whole[:29] + "\n"}}, []string{"x", "x"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				counted := ""
				in := New(Config{Topic: "sys", OnLimit: func(what, why string) { counted += what + " " + why }})
				client, server := net.Pipe()
				ended := make(chan time.Time, 1)
				go func() {
					in.serveStream(t.Context(), t.Context(), server)
					ended <- time.Now()
				}()
				for _, p := range c.parts {
					<-time.After(p.after)
					if _, err := io.WriteString(client, p.text); err != nil {
						t.Fatal(err)
					}
				}
				last := time.Now()
				select {
				case at := <-ended:
					if took := at.Sub(last); c.ends == 0 || took != c.ends || counted != "syslog connections unfinished" {
						t.Errorf("it ended after %s, counted is %q", took, counted)
					}
				case <-time.After(10 * time.Hour):
					if c.ends > 0 || counted != "" {
						t.Errorf("it did not end, counted is %q", counted)
					}
				}
				_ = client.Close()
				in.streams.close()
				var messages []string
				for _, q := range in.streams.take(t.Context(), 100, 1<<20) {
					messages = append(messages, strings.TrimSpace(q.event.Message))
				}
				for i, m := range messages { // what is cut off may be kept with what is before it
					messages[i] = m[strings.LastIndexByte(m, ' ')+1:]
				}
				if !slices.Equal(messages, c.messages) {
					t.Errorf("taken are %q, want %q", messages, c.messages)
				}
			})
		})
	}
}
