package producer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/producer/spool"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// ruledJSON draws a JSON object in which every value that a rule covers is CLEAR, by one of the
// ways a name may come, among others.
func ruledJSON(rules []schemas.Private) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var members []string
		for range rapid.IntRange(1, 6).Draw(t, "members") {
			p := rapid.SampledFrom(rules).Draw(t, "rule")
			name, inner, nested := strings.Cut(p.Field, ".")
			secret := fmt.Sprintf(`"CLEAR %d"`, rapid.IntRange(0, 9).Draw(t, "n"))
			if nested {
				secret = fmt.Sprintf(`[{%q:%s,"other":1},{%q:{"deep":%s}}]`, inner, secret, inner, secret)
			}
			form := rapid.SampledFrom([]string{`%q:%s`, `%q:"x",%[1]q:%[2]s`, `%q:{"home":%s,"":[%[2]s]}`, `"attributes":{%q:%s}`, `" .%[1]s":%[2]s`, `"%[1]s#7":%[2]s`, `"attributes":{"attributes":{%q:{"a":%s}}}`}).Draw(t, "form")
			if nested {
				form = `%q:%s`
			}
			if rapid.Bool().Draw(t, "upper") {
				name = strings.ToUpper(name)
			}
			members = append(members, fmt.Sprintf(form, name, secret), fmt.Sprintf(`"k%d":"open"`, rapid.IntRange(0, 99).Draw(t, "k")))
		}
		if rapid.IntRange(0, 9).Draw(t, "wide") == 0 { // beyond the limit on attributes
			for i := range schemas.MaxAttrs + 20 {
				members = append([]string{fmt.Sprintf(`"w%d":%d`, i, i)}, members...)
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	})
}

// Whatever the records and the rules, what a rule covers is in no
// file of the spool, neither as it stands there nor decoded.
func TestNothingInClearInTheSpool(t *testing.T) {
	t.Parallel()
	drop, hash, ip := schemas.PrivacyDrop, schemas.PrivacyHash, schemas.PrivacyTruncateIP
	for name, rules := range map[string][]schemas.Private{
		"drop":   {{Field: "email", Rule: drop}, {Field: "message", Rule: drop}},
		"hash":   {{Field: "user_id", Rule: hash}, {Field: "email", Rule: hash}},
		"inside": {{Field: "users.card", Rule: hash}, {Field: "ip", Rule: ip}},
		"place":  {{Field: "lat", Rule: schemas.PrivacyCoarseLocation}, {Field: "user_id", Rule: hash}, {Field: "users.card", Rule: drop}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := schemas.NewTopic("app")
			topic.PII = rules
			dir := t.TempDir()
			if err := LeaveTopic(dir, topic); err != nil {
				t.Fatal(err)
			}
			cfg := spooling(dir)
			cfg.PrivacyKey = []byte("0123456789abcdef")
			p, err := Connect(t.Context(), "nats://127.0.0.1:1", cfg) // nothing listens there
			if err != nil {
				t.Fatal(err)
			}
			const lines = 200
			draw := ruledJSON(rules)
			for i := range lines {
				line := draw.Example(i)
				if !json.Valid([]byte(line)) {
					t.Fatalf("not JSON: %s", line)
				}
				p.Log(p.LineEvent([]byte(line)))
			}
			if err := p.Close(t.Context()); !errors.Is(err, ErrSpooled) {
				t.Fatalf("Close: %v", err)
			}
			err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				if bytes.Contains(text, []byte("CLEAR")) {
					t.Errorf("%s has it in clear", path)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			s, err := spool.Open(filepath.Join(dir, topic.Name), spool.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			var reader frame.Reader
			events := 0
			for {
				r, err := s.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := reader.Open(r.Payload, &topic, r.Head.Schema); err != nil {
					t.Fatal(err)
				}
				events += reader.Rows()
				if at := bytes.Index(reader.Raw(), []byte("CLEAR")); at >= 0 {
					raw := reader.Raw()
					t.Errorf("a frame has it in clear: …%q…", raw[max(at-80, 0):min(at+20, len(raw))])
				}
			}
			if events != lines {
				t.Errorf("%d events in the spool, want %d", events, lines)
			}
		})
	}
}
