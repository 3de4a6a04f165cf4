package embedded

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func program(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// Find in its order. Not parallel: it changes the environment.
func TestFind(t *testing.T) {
	modules, err := os.ReadFile("../../package.json")
	if err != nil || !strings.Contains(string(modules), `"@chdb/lib-linux-x64-gnu": "`+libraryVersion+`"`) {
		t.Errorf("the version that is named is not that of package.json: %v, %s", err, modules)
	}
	bin, empty := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin)
	t.Setenv(LibraryEnv, "")
	t.Chdir(empty)

	_, err = Find(t.Context(), "", nil)
	if !errors.Is(err, ErrNoEngine) {
		t.Fatalf("with nothing: %v, want ErrNoEngine", err)
	}
	for _, way := range []string{"make setup", "npm install --prefix . --no-save @chdb/" + libraryPackage() + "@26.", "PATH", "--clickhouse"} {
		if !strings.Contains(err.Error(), way) {
			t.Errorf("%q does not name the way %q", err, way)
		}
	}

	installed := filepath.Join(empty, "node_modules", "@chdb", libraryPackage())
	if err := os.MkdirAll(installed, 0o700); err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(installed, "libchdb.so")
	program(t, installed, "libchdb.so", "")
	below := filepath.Join(empty, "a", "b")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	expect := func(what string, kind EngineKind, path string) {
		t.Helper()
		got, err := Find(t.Context(), "", nil)
		if err != nil || got.Kind != kind || got.Path != path {
			t.Errorf("%s: %v, %v; want %s %s", what, got, err, kind, path)
		}
	}
	expect("node_modules of a parent", EngineLibrary, library)

	named := filepath.Join(t.TempDir(), "libchdb.so")
	t.Setenv(LibraryEnv, named)
	if _, err := Find(t.Context(), "", nil); !errors.Is(err, ErrNoEngine) || !strings.Contains(err.Error(), LibraryEnv) {
		t.Errorf("a library that is named and missing: %v, want ErrNoEngine naming %s", err, LibraryEnv)
	}
	program(t, filepath.Dir(named), "libchdb.so", "")
	expect("a library that is named", EngineLibrary, named)

	var heard []string
	log := func(_ Level, _, text string) { heard = append(heard, text) }
	program(t, bin, "clickhouse", "#!/bin/sh\necho ClickHouse local version 25.8.1.1.\n")
	if got, err := Find(t.Context(), "", log); err != nil || got.Kind != EngineLibrary {
		t.Errorf("an old program: %v, %v; want the library", got, err)
	}
	if len(heard) != 1 || !strings.Contains(heard[0], "25.8.1.1: older than 26.2") {
		t.Errorf("the old program was passed over with the words %q", heard)
	}
	program(t, bin, "clickhouse", "#!/bin/sh\necho ClickHouse local version 26.2.1.5.\n")
	expect("a new program", EngineBinary, filepath.Join(bin, "clickhouse"))

	prefix := t.TempDir()
	lib := filepath.Join(prefix, "lib", "almanac")
	if err := os.MkdirAll(lib, 0o700); err != nil {
		t.Fatal(err)
	}
	program(t, lib, "libchdb.so", "")
	if got := findLibrary([]string{filepath.Join(prefix, "bin"), empty}); got != filepath.Join(lib, "libchdb.so") {
		t.Errorf("one that make install put: %q", got)
	}

	if got, err := Find(t.Context(), "clickhouse://x", nil); err != nil || got.Kind != EngineRemote {
		t.Errorf("a DSN: %v, %v; want it before all else", got, err)
	}
}

func TestNewEnough(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"ClickHouse local version 26.2.0.1 (official build).": true,
		"ClickHouse client version 26.1.99.1.":                false,
		"ClickHouse server version 27.1.1.1":                  true,
		"ClickHouse server version 9.99":                      false,
		"no number":                                           false,
		"":                                                    false,
		"99999999999999999999.1":                              false,
	} {
		if _, got := newEnough(text); got != want {
			t.Errorf("newEnough(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestRemoteEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dsn, http, tcp, user, database string }{
		{"clickhouse://u:p@h:9000/d", "http://h:8123", "h:9000", "u", "d"},
		{"clickhouse://u:p@h:9000", "http://h:8123", "h:9000", "u", "almanac"},
		{"clickhouse://h:9440/d?secure=true", "https://h:8443", "h:9440", "default", "d"},
		{"clickhouse://h:9000/d?http_port=81", "http://h:81", "h:9000", "default", "d"},
		{"clickhouse://a:9000,b:9000/d", "http://a:8123", "a:9000", "default", "d"},
		{"https://u:p@h:8443/d", "https://h:8443", "", "u", "d"},
		{"http://h:8123", "http://h:8123", "", "default", "almanac"},
	} {
		d, err := remoteEndpoint(c.dsn, DefaultDatabase, nil)
		if err != nil {
			t.Errorf("%s: %v", c.dsn, err)
			continue
		}
		got := fmt.Sprint(d.http, " ", d.tcp, " ", d.user, " ", d.database)
		if want := fmt.Sprint(c.http, " ", c.tcp, " ", c.user, " ", c.database); got != want {
			t.Errorf("%s: %s, want %s", c.dsn, got, want)
		}
		if strings.Contains(d.dsn, httpPortOption) {
			t.Errorf("%s: %s would reach clickhouse-go as a setting", c.dsn, httpPortOption)
		}
	}
	for _, bad := range []string{"", "h:9000", "clickhouse://u:secret@", "clickhouse://u:secret@h:9000/d?http_port=x", "clickhouse://u:secret@h:9000/no-name", "://"} {
		if d, err := remoteEndpoint(bad, DefaultDatabase, nil); err == nil {
			t.Errorf("%q was understood as %s %s", bad, d.http, d.tcp)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestEngineLogIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "engine.log")
	l, err := openEngineLog(path, 1000)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", 99) + "\n"
	for range 95 {
		if n, err := l.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	l.close()
	for name, want := range map[string]int64{path: 500, path + ".1": 1000} {
		if info, err := os.Stat(name); err != nil || info.Size() != want {
			t.Errorf("%s: %v, %v; want %d bytes", name, info, err, want)
		}
	}
	if got := l.lastWords(); len(got) != engineLogTail || !strings.HasSuffix(got, line) {
		t.Errorf("the tail has %d bytes", len(got))
	}
	if _, err := l.Write([]byte("after the end")); err != nil {
		t.Error(err)
	}
}

// A main without EngineMain must not start itself again and again.
func TestNestedEngineIsRefused(t *testing.T) {
	t.Setenv(childEnv, "1")
	_, err := NewClickHouse(ClickHouseConfig{Engine: Engine{Kind: EngineLibrary, Path: "x"}, Dir: "x"})
	if !errors.Is(err, ErrNested) {
		t.Errorf("NewClickHouse = %v, want ErrNested", err)
	}
}

func TestClickHouseConfigIsChecked(t *testing.T) {
	t.Parallel()
	library := Engine{Kind: EngineLibrary, Path: "x"}
	for name, cfg := range map[string]ClickHouseConfig{
		"no engine":     {Dir: "x"},
		"no directory":  {Engine: library},
		"database":      {Engine: library, Dir: "x", Database: "a-b"},
		"further":       {Engine: library, Dir: "x", Further: []string{"*"}},
		"port":          {Engine: library, Dir: "x", TCPPort: 65536},
		"same port":     {Engine: library, Dir: "x", TCPPort: 1, HTTPPort: 1},
		"memory":        {Engine: library, Dir: "x", MaxMemoryBytes: 1},
		"all addresses": {Engine: library, Dir: "x", Host: "::"},
	} {
		if _, err := NewClickHouse(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPasswordsAreKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "passwords.json")
	first, err := loadPasswords(path, clickHouseUsers())
	if err != nil {
		t.Fatal(err)
	}
	if len(first[UserAlmanac]) < 20 || first[UserAlmanac] == first[UserReader] {
		t.Errorf("weak passwords: %d characters", len(first[UserAlmanac]))
	}
	if again, err := loadPasswords(path, clickHouseUsers()); err != nil || !maps.Equal(again, first) {
		t.Errorf("the second look gave others: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	program(t, filepath.Dir(path), "passwords.json", "{")
	if _, err := loadPasswords(path, clickHouseUsers()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged file: %v, want an error naming it", err)
	}
}

func TestHumanBytes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 5 << 29: "2.5 GiB", 1 << 62: "4096.0 PiB"} {
		if got := humanBytes(n); got != want {
			t.Errorf("humanBytes(%d) = %q, want %q", n, got, want)
		}
	}
}

// No text makes the reader of DSNs panic, or show the password.
func FuzzRemoteEndpoint(f *testing.F) {
	f.Add("clickhouse://u:p@h:9000/d?http_port=1")
	f.Add("https://[::1]:8443/d?secure=false")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := remoteEndpoint(text, DefaultDatabase, nil)
		if err == nil && (d.http == "" || d.database == "" || d.user == "") {
			t.Errorf("%q gave %+v", text, d)
		}
	})
}

// A clickhouse program that is asked for its version gets nothing of what this process holds in its environment.
func TestVersionIsAskedWithoutTheEnvironment(t *testing.T) {
	t.Setenv("ALMANAC_PII_KEY", "marked-secret")
	dir := t.TempDir()
	program, seen := filepath.Join(dir, "clickhouse"), filepath.Join(dir, "seen")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nenv > "+seen+"\necho ClickHouse 99.1.1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if version, err := programVersion(t.Context(), program); err != nil || version != " 99.1.1" {
		t.Fatalf("version %q, %v", version, err)
	}
	environ, err := os.ReadFile(seen)
	if err != nil || !strings.Contains(string(environ), "PATH=") || strings.Contains(string(environ), "marked-secret") {
		t.Errorf("its environment: %v %s", err, environ)
	}
}
