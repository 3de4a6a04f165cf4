package timer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/almanac-events/almanac/schemas"
)

// Bounds of a timer's spec.
const (
	MaxURLBytes     = 2048
	MaxPayloadBytes = 100 << 10
	// DefaultTimeout and MaxTimeout of a call, up to and with its answer.
	DefaultTimeout = 30 * time.Second
	MaxTimeout     = 30 * time.Second
	// MaxPast is how far in the past a due time may lie; it is then due now.
	MaxPast = time.Second
	// MaxAhead is how far ahead a due time may lie: ten years.
	MaxAhead = 10 * 366 * 24 * time.Hour
	// Calls bounds the calls of a dispatcher at once. A group has at most half of them.
	Calls = 2000
	// CallsPerHost bounds the calls of a dispatcher to one host and port at once, and its connections there.
	CallsPerHost = 64
	// MaxUserBytes bounds the user that a timer is about.
	MaxUserBytes = 255
)

// Spec is what is called, and how.
type Spec struct {
	URL     string          `json:"url"`
	Payload json.RawMessage `json:"payload,omitempty"`
	// Timeout of a call; 0: the group's, which has DefaultTimeout if it says nothing.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Retry is nil for the group's policy; a group without one makes a single attempt.
	Retry *Policy `json:"retry,omitempty"`
	// MaxLateness fails an attempt that could only begin later than this after its due time; 0: never.
	MaxLateness time.Duration `json:"max_lateness_ns,omitempty"`
	// After is how far ahead the due time was asked to be; 0: it was asked as a time.
	After time.Duration `json:"after_ns,omitempty"`
	// Bare: the payload alone is the body of a call, as who receives it expects it.
	Bare bool `json:"bare,omitempty"`
}

// Equal reports whether two specs call the same: so Create tells a timer that is asked for again
// from another one of its id. After is how the due time was asked, which Create compares by itself.
func (s *Spec) Equal(o *Spec) bool {
	x, y := *s, *o
	x.After, y.After = 0, 0
	a, _ := json.Marshal(x)
	b, _ := json.Marshal(y)
	return bytes.Equal(a, b)
}

// Host returns the URL's host with its port.
func (s *Spec) Host() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	if u.Port() != "" {
		return strings.ToLower(u.Host)
	}
	port := 80
	if u.Scheme == "https" {
		port = 443
	}
	return strings.ToLower(u.Host) + ":" + strconv.Itoa(port)
}

// Validate refuses a spec that could not be called. allowHosts are the group's; none allows every
// host.
func (s *Spec) Validate(allowHosts []string) error {
	if err := CheckURL(s.URL, allowHosts); err != nil {
		return err
	}
	if len(s.Payload) > MaxPayloadBytes {
		return refuse(CodePayloadSize, "the payload has %d bytes, the limit is %d", len(s.Payload), MaxPayloadBytes)
	}
	if len(s.Payload) > 0 && (!json.Valid(s.Payload) || !utf8.Valid(s.Payload)) {
		return refuse(CodePayload, "the payload is not JSON in UTF-8")
	}
	if s.Bare && len(s.Payload) == 0 {
		return refuse(CodePayload, "bare: the payload alone is the body, and there is none")
	}
	if s.Timeout < 0 || s.Timeout > MaxTimeout {
		return refuse(CodeTimeout, "the timeout is %s; expected more than 0 and at most %s", s.Timeout, MaxTimeout)
	}
	if s.MaxLateness < 0 {
		return refuse(CodeLateness, "max_lateness is %s; expected 0 or more", s.MaxLateness)
	}
	if s.Retry != nil {
		return s.Retry.Validate()
	}
	return nil
}

// CheckURL refuses a URL that is not called: another scheme than http and https, userinfo, no host, or
// a host that the group does not allow. It does not resolve names: the dialer judges the address.
func CheckURL(text string, allowHosts []string) error {
	if len(text) > MaxURLBytes {
		return refuse(CodeURLSize, "the URL has %d bytes, the limit is %d", len(text), MaxURLBytes)
	}
	u, err := url.Parse(text)
	if err != nil {
		return refuse(CodeURL, "the URL cannot be parsed")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse(CodeURLScheme, "the URL's scheme is %q; expected http or https", u.Scheme)
	case u.User != nil:
		return refuse(CodeURLUser, "the URL has a user name or password; the callback is signed instead")
	case u.Hostname() == "" || u.Opaque != "":
		return refuse(CodeURL, "the URL does not name a host")
	case u.Fragment != "":
		return refuse(CodeURL, "the URL has a fragment, which no server sees")
	case !HostAllowed(u.Hostname(), allowHosts):
		return refuse(CodeHost, "the group does not allow host %q; it allows %s", u.Hostname(), strings.Join(allowHosts, ", "))
	}
	return nil
}

// HostAllowed reports whether a group's list has the host: by its exact name, or by *.example.com for
// every name below example.com. An empty list allows all.
func HostAllowed(host string, allow []string) bool {
	if len(allow) == 0 {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, a := range allow {
		a = strings.ToLower(a)
		if a == host || strings.HasPrefix(a, "*.") && strings.HasSuffix(host, a[1:]) && len(host) > len(a)-1 {
			return true
		}
	}
	return false
}

// CheckAllowHosts refuses a list of hosts that could not match what it seems to.
func CheckAllowHosts(hosts []string) error {
	for _, h := range hosts {
		name := strings.TrimPrefix(h, "*.")
		if name == "" || strings.ContainsAny(name, "*/:?@ ") && !strings.Contains(name, "::") || path.Clean(name) != name {
			return refuse(CodeAllowHosts, "allow_hosts: %q; expected a host name such as hooks.example.com or *.example.com", h)
		}
	}
	return nil
}

// ParseDue reads a due time: +2s after now, or RFC 3339.
func ParseDue(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, refuse(CodeDueMissing, "the due time is missing; give +2s or a time such as 2026-01-02T15:04:05Z")
	}
	if after, ok := strings.CutPrefix(text, "+"); ok {
		d, ok := schemas.ParseSpan(after)
		if !ok {
			return time.Time{}, refuse(CodeDueFormat, "the due time %q is not a length of time such as +2s, +1h30m or +7d", text)
		}
		return now.Add(d), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, refuse(CodeDueFormat, "the due time %q is not +2s, +7d nor RFC 3339, such as 2026-01-02T15:04:05Z", text)
	}
	return t, nil
}

// AfterOf returns how far ahead a due time is asked to be, at least 1 ns; 0 where it is a time.
func AfterOf(text string) time.Duration {
	after, ok := strings.CutPrefix(text, "+")
	d, span := schemas.ParseSpan(after)
	if !ok || !span {
		return 0
	}
	return max(d, 1)
}

// CheckDue refuses a due time that lies too far in the past or ahead, and returns it as unix ns: now
// where it is past by at most MaxPast.
func CheckDue(due, now time.Time) (int64, error) {
	switch ahead := due.Sub(now); {
	case due.IsZero():
		return 0, refuse(CodeDueMissing, "the due time is missing; give +2s or a time such as 2026-01-02T15:04:05Z")
	case ahead < -MaxPast:
		return 0, refuse(CodeDuePast, "the due time %s is %s in the past; expected at most %s", due.UTC().Format(time.RFC3339Nano), (-ahead).Round(time.Millisecond), MaxPast)
	case ahead > MaxAhead:
		return 0, refuse(CodeDueAhead, "the due time %s lies more than ten years ahead", due.UTC().Format(time.RFC3339Nano))
	case ahead < 0:
		return now.UnixNano(), nil
	}
	return due.UnixNano(), nil
}

// ParseTimeout reads the timeout of a call. Unlike an absent one, 0 is refused.
func ParseTimeout(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > MaxTimeout {
		return 0, refuse(CodeTimeout, "the timeout is %q; expected more than 0 and at most %s, such as 5s", text, MaxTimeout)
	}
	return d, nil
}

// CheckUser refuses the name of a user that a header cannot hold.
func CheckUser(user string) error {
	if len(user) > MaxUserBytes || strings.ContainsAny(user, "\r\n") {
		return refuse(CodeUser, "the user has %d bytes or a line break; expected at most %d bytes in one line", len(user), MaxUserBytes)
	}
	return nil
}

// GroupHolds refuses another timer of a group whose live timers hold as many bytes of TIMERS as it may.
func GroupHolds(g *Group, live int, has, may int64) error {
	why := "a group may hold as much as is free, which leaves room for the others"
	if g.MaxBytes > 0 {
		why = "that is its max_bytes"
	}
	return refuse(CodeGroupFull, "group %q holds %s of TIMERS with %d timers that are not over, and may hold %s: %s; wait until some are called, delete some, make TIMERS larger with `almanac streams apply TIMERS --bytes SIZE`, or change its share with `almanac timers groups apply %s --max-bytes SIZE`",
		g.Name, schemas.FormatBytes(float64(has)), live, schemas.FormatBytes(float64(max(may, 0))), why, g.Name)
}

// GroupFull refuses another timer of a group that has its max_pending.
func GroupFull(g *Group, pending int) error {
	return refuse(CodeGroupFull, "group %q has %d timers that are not over, and max_pending is %d; wait until some are called, delete some, or raise it with `almanac timers groups apply %s --max-pending N`",
		g.Name, pending, g.MaxPending, g.Name)
}

func refuse(code Code, format string, args ...any) error {
	return &Refusal{Code: code, Text: fmt.Sprintf(format, args...)}
}
