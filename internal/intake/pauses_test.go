package intake

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A record of many lines ends where the input is silent for a second, and where reading is to end; never
// within a line.
func TestPauses(t *testing.T) {
	type write struct {
		text  string
		after time.Duration
	}
	for name, c := range map[string]struct {
		writes []write
		stop   time.Duration // when reading is to end; 0: with the input
		want   []string
	}{
		"no silence":      {[]write{{"E 1\n a\n", 0}, {"E 2\n", 900 * time.Millisecond}}, 0, []string{"E 1\n a", "E 2"}},
		"a silence":       {[]write{{"E 1\n a\n", 0}, {" b\nE 2\n", 1100 * time.Millisecond}}, 0, []string{"E 1\n a", " b", "E 2"}},
		"within a line":   {[]write{{"E 1\n a", 0}, {"b\n", time.Hour}, {" c\n", 0}}, 0, []string{"E 1\n ab\n c"}},
		"between records": {[]write{{"E 1\n", 0}, {"E 2\n", time.Hour}, {"E 3\n", time.Hour}}, 0, []string{"E 1", "E 2", "E 3"}},
		"the end":         {[]write{{"E 1\n a\n", 0}, {"never\n", time.Hour}}, 500 * time.Millisecond, []string{"E 1\n a"}},
		"nothing":         {[]write{{"never\n", time.Hour}}, time.Minute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, out := io.Pipe()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.stop > 0 {
					time.AfterFunc(c.stop, cancel)
				}
				go func() {
					for _, w := range c.writes {
						select {
						case <-time.After(w.after):
						case <-ctx.Done():
							return
						}
						if _, err := io.WriteString(out, w.text); err != nil {
							return
						}
					}
					_ = out.Close()
				}()
				defer func() { cancel(); _ = in.Close() }()
				r := NewReader(NewPauses(ctx, in, time.Second), Options{Format: FormatText, Multiline: regexp.MustCompile(`^E`)})
				var got []string
				for {
					rec, err := r.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, rec.Event.Message)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%q, want %q", got, c.want)
				}
			})
		})
	}
}

// What follows a short first line is not waited for, to see whether the input is compressed.
func TestUnpackShortLine(t *testing.T) {
	for _, first := range []string{"a\n", "\n", "(\n", "(\xb5\n"} {
		in, out := io.Pipe()
		go func() { _, _ = io.WriteString(out, first) }()
		plain, err := Unpack(in)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(first))
		if _, err := io.ReadFull(plain, got); err != nil || string(got) != first {
			t.Errorf("%q, %v, want %q", got, err, first)
		}
		_ = in.Close()
	}
}
