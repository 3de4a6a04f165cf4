package embedded

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// accountHeader is a header by which an account logs in, and the values that name one of ours, as an
// expression for the whole value.
type accountHeader struct{ Header, Matches string }

// accountHeaders are the two ways to name an account that a page of another origin cannot use: no form, image or link
// sends these headers, and for a script to send one the browser asks the engine first, which does not allow it.
// Parameters of the URL are not among them.
func accountHeaders(users ...string) []accountHeader {
	var basic []string
	for _, u := range users {
		basic = append(basic, basicPrefix(u))
	}
	return []accountHeader{
		{"X-ClickHouse-User", "(" + strings.Join(users, "|") + ")"},
		{"Authorization", "[Bb]asic +(" + strings.Join(basic, "|") + ").*"},
	}
}

// basicPrefix is the expression for what every login of user by Authorization: Basic begins with, whatever the password
// is. Base64 has six bits a sign, so the last sign of "user:" is one of several.
func basicPrefix(user string) string {
	bits := []byte(user + ":")
	first, last := encoded(append(bits, 0x00)), encoded(append(bits, 0xff))
	n := 0
	for first[n] == last[n] {
		n++
	}
	var signs strings.Builder
	for next := range 256 {
		if s := encoded(append(bits, byte(next)))[n : n+1]; !strings.Contains(signs.String(), s) {
			signs.WriteString(s)
		}
	}
	return regexp.QuoteMeta(first[:n]) + "[" + regexp.QuoteMeta(signs.String()) + "]"
}

func encoded(b []byte) string { return base64.RawStdEncoding.EncodeToString(b) }
