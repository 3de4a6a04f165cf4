package backup

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// Tables whose storage policy the target does not know are restored under its own; the others keep theirs.
func TestTablesByPolicy(t *testing.T) {
	t.Parallel()
	all := []Table{{"app", 1, 1, "almanac"}, {"auth", 1, 1, "default"}, {"web", 1, 1, "s3"}}
	for name, c := range map[string]struct {
		knows []string
		want  string
	}{
		"all":  {[]string{"almanac", "default", "s3"}, "map[true:[app auth web]]"},
		"some": {[]string{"default"}, "map[false:[app web] true:[auth]]"},
		"none": {nil, "map[false:[app auth web]]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(byPolicy(all, func(p string) bool { return slices.Contains(c.knows, p) })); got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		})
	}
}

func example() *Manifest {
	m := &Manifest{
		Format: Format, Version: "v1", Database: "almanac", Point: time.Date(2026, 11, 26, 17, 0, 0, 5, time.UTC),
		Groups: []Group{{Name: groupTopics, Tables: []Table{{"app", 3, 1, "default"}}}}, Ledger: Object{digest(nil), 0},
	}
	for _, name := range copiedStreams() {
		m.Streams = append(m.Streams, Stream{Name: name, Config: []byte(`{"name":"` + name + `"}`)})
	}
	return m
}

// A manifest that says what no backup says is refused, whatever digest it has: it may lead nowhere else.
func TestManifestSaysWhatABackupHas(t *testing.T) {
	t.Parallel()
	one := Object{digest(nil), 1}
	for name, change := range map[string]func(m *Manifest){
		"a file elsewhere":   func(m *Manifest) { m.Groups[0].Files = []File{{"../../etc/x", one}} },
		"a file at the root": func(m *Manifest) { m.Groups[0].Files = []File{{"/etc/x", one}} },
		"a group elsewhere":  func(m *Manifest) { m.Groups[0].Name = "../../x" },
		"a group twice":      func(m *Manifest) { m.Groups = append(m.Groups, m.Groups[0]) },
		"groups in no order": func(m *Manifest) { m.Groups = append(m.Groups, Group{Name: groupLedger}) },
		"no digest":          func(m *Manifest) { m.Ledger.SHA256 = "" },
		"a short digest":     func(m *Manifest) { m.Streams[1].Chunks = []Chunk{{1, Object{"ab", 1}}} },
		"a path for a digest": func(m *Manifest) {
			m.Ledger.SHA256 = "../../../../../../../../../../../../../../../../etc/passwd-of-64-b"
		},
		"fewer than no bytes": func(m *Manifest) { m.Groups[0].Files = []File{{"x", Object{digest(nil), -1}}} },
		"a stream too few":    func(m *Manifest) { m.Streams = m.Streams[1:] },
		"another's stream":    func(m *Manifest) { m.Streams[0].Name = "OTHERS" },
		"a stream twice":      func(m *Manifest) { m.Streams[0] = m.Streams[1] },
		"no stream":           func(m *Manifest) { m.Streams = nil },
	} {
		t.Run(name, func(t *testing.T) {
			m := example()
			change(m)
			text, err := m.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Decode(m.Name(), text); !errors.Is(err, ErrTorn) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// A manifest in which any bit differs, or that was cut anywhere, is refused.
func TestManifestIsWholeOrRefused(t *testing.T) {
	t.Parallel()
	m := example()
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(m.Name(), text)
	if err != nil || !back.Point.Equal(m.Point) || back.Groups[0].Tables[0] != m.Groups[0].Tables[0] {
		t.Fatalf("%+v, %v", back, err)
	}
	for i := range text {
		if _, err := Decode("x", text[:i]); !errors.Is(err, ErrTorn) {
			t.Fatalf("cut at %d: %v", i, err)
		}
		for bit := range 8 {
			bad := append([]byte(nil), text...)
			bad[i] ^= 1 << bit
			if _, err := Decode("x", bad); !errors.Is(err, ErrTorn) && !errors.Is(err, ErrFormat) {
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
}

// Of two Almanacs, and where a clock was set back, a place does not take the second backup.
func TestBackupsFollowEachOther(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	of := func(cluster string, point time.Time) *Manifest { return &Manifest{Cluster: cluster, Point: point} }
	for name, c := range map[string]struct {
		m, newest *Manifest
		want      error
	}{
		"the first one":         {of("a", at), nil, nil},
		"a later one":           {of("a", at.Add(1)), of("a", at), nil},
		"before it is copied":   {of("a", time.Time{}), of("a", at), nil},
		"of the same time":      {of("a", at), of("a", at), ErrNotOurs},
		"of an earlier time":    {of("a", at.Add(-time.Hour)), of("a", at), ErrNotOurs},
		"of another Almanac":    {of("b", time.Time{}), of("a", at), ErrNotOurs},
		"after one without its": {of("b", at.Add(1)), of("", at), ErrNotOurs},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.m.follows(c.newest); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}
