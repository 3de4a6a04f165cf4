package intake

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Compressed input is told by its content, and damaged one is an
// error, not a shorter input.
func TestUnpackByContent(t *testing.T) {
	text := strings.Repeat("a line of text\n", 50_000)
	var gz, zs bytes.Buffer
	w := gzip.NewWriter(&gz)
	_, _ = io.WriteString(w, text[:100])
	_ = w.Close()
	w.Reset(&gz) // a second member, as cat makes it
	_, _ = io.WriteString(w, text[100:])
	_ = w.Close()
	z, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	for name, data := range map[string][]byte{"plain": []byte(text), "gzip": gz.Bytes(), "zstd": zs.Bytes()} {
		t.Run(name, func(t *testing.T) {
			r, err := Unpack(bytes.NewReader(data))
			if err != nil {
				t.Fatal(name, err)
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != text {
				t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(text), err)
			}
			if name == "plain" {
				return
			}
			if r, err = Unpack(bytes.NewReader(data[:len(data)-5])); err == nil {
				_, err = io.ReadAll(r)
			}
			if !errors.Is(err, ErrCutShort) {
				t.Errorf("%s that is cut short: %v", name, err)
			}
		})
	}
	for _, short := range []string{"", "a", "\x1f\x8b"} {
		r, err := Unpack(strings.NewReader(short))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != short {
			t.Errorf("%q: %q, %v", short, got, err)
		}
	}
}

// Delimiters, byte order marks, times that are asked for, and
// times as programs write them.
func TestOptionsOfFormats(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		opts  Options
		input string
		want  string
	}{
		"semicolon":         {Options{Format: FormatCSV, Delimiter: ';'}, "a;b\n1,5;\"x;y\"\n", `2+1 [a]="1,5" [b]="x;y"`},
		"tab":               {Options{Format: FormatCSV, Delimiter: '\t'}, "a\tb\n1\t2\n", `2+1 [a]="1" [b]="2"`},
		"mark in text":      {Options{Format: FormatText}, "\xef\xbb\xbfhello\n", `1+1 message="hello"`},
		"+0000":             {Options{Format: FormatNDJSON}, `{"ts":"2023-11-14T22:13:20.5+0000"}`, `1+1 ts=1700000000`},
		"no zone":           {Options{Format: FormatNDJSON}, `{"ts":"2023-11-14T22:13:20"}`, `1+1 ts=1700000000`},
		"a space":           {Options{Format: FormatLogfmt}, `ts="2023-11-14 22:13:20"`, `1+1 ts=1700000000`},
		"no zone in Berlin": {Options{Format: FormatNDJSON, Location: berlin}, `{"ts":"2023-11-14T23:13:20"}`, `1+1 ts=1700000000`},
		"numbers in Berlin": {Options{Format: FormatNDJSON, Location: berlin}, `{"ts":1700000000000}`, `1+1 ts=1700000000`},
		"named":             {Options{Format: FormatText, TsFormat: "rfc3339"}, "2023-11-14T22:13:20+0000 x", `1+1 message="2023-11-14T22:13:20+0000 x" ts=1700000000`},
		"named, a zone":     {Options{Format: FormatText, TsFormat: "rfc3339", Location: berlin}, "2023-11-14T22:13:20Z x", `1+1 message="2023-11-14T22:13:20Z x" ts=1700000000`},
	} {
		t.Run(name, func(t *testing.T) {
			rec, err := NewReader(strings.NewReader(c.input), c.opts).Next()
			if got := show(rec); err != nil || got != c.want {
				t.Errorf("%s: %s (%v, %v), want %s", name, got, err, rec.Err, c.want)
			}
		})
	}
	for format, input := range map[string]string{FormatText: "hello", FormatNDJSON: `{"a":1}`, FormatCSV: "a\n1\n", FormatLogfmt: "a=1"} {
		rec, err := NewReader(strings.NewReader(input), Options{Format: format, RequireTime: true}).Next()
		if err != nil || !errors.Is(rec.Err, ErrNoTime) {
			t.Errorf("%s without a time: %v, %v", format, err, rec.Err)
		}
	}
	for _, o := range []Options{{Format: FormatText, Delimiter: ';'}, {Format: FormatCSV, Delimiter: '"'}, {Format: FormatCSV, Delimiter: '\n'}} {
		if err := o.Validate(); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
