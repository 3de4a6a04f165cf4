package keep

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/almanac-events/almanac/internal/access"
)

var peer = netip.MustParseAddr("10.0.0.1")

func token(name string) (secret string, t access.Token) {
	secret, id := access.NewSecret()
	return secret, access.Token{Name: name, ID: id, Digest: access.DigestOf(secret), Grants: []access.Grant{{Role: access.RoleSQL}}}
}

// TestAddedTokenIsUsedAtOnce holds that a token is taken by the first who asks after it was added, and that a file which is broken
// keeps those with a wrong secret for three looks at most.
func TestAddedTokenIsUsedAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	first, a := token("a")
	second, b := token("b")
	synctest.Test(t, func(t *testing.T) {
		k, err := Open(Config{File: path})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = k.Run(ctx) }()
		ask := func(secret string) error {
			_, _, err := k.Authenticate(ctx, &access.Asked{Secret: secret, Peer: peer})
			return err
		}
		for i, all := range [][]access.Token{{a}, {a, b}} {
			if err := WriteFile(path, all); err != nil {
				t.Fatal(err)
			}
			if err := ask([]string{first, second}[i]); err != nil {
				t.Errorf("token %d, just added: %v", i, err)
			}
		}
		if err := os.WriteFile(path, []byte("tokens: ["), 0o600); err != nil {
			t.Fatal(err)
		}
		unknown, _ := token("unknown")
		began := time.Now()
		if err := ask(unknown); !errors.Is(err, access.ErrUnauthenticated) || time.Since(began) > 3*look {
			t.Errorf("an unknown secret, beside a broken file: %v after %v", err, time.Since(began))
		}
	})
}

// A file that is made, changed, broken, mended and removed while a keeper runs: within two seconds
// each holds, and a broken one changes nothing and is said once.
func TestFileIsFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "tokens.yaml")
	first, a := token("a")
	second, b := token("b")
	synctest.Test(t, func(t *testing.T) {
		var said atomic.Int32
		k, err := Open(Config{File: path, OnError: func(error) { said.Add(1) }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = k.Run(ctx) }()
		for i, step := range []struct {
			do     func() error
			valid  []string
			not    []string
			errors int
		}{
			{func() error { return nil }, nil, []string{first, second}, 0},
			{func() error { return WriteFile(path, []access.Token{a}) }, []string{first}, []string{second}, 0},
			{func() error { return WriteFile(path, []access.Token{a, b}) }, []string{first, second}, nil, 0},
			{func() error { return os.WriteFile(path, []byte("tokens: ["), 0o600) }, []string{first, second}, nil, 1},
			{func() error { return WriteFile(path, []access.Token{b}) }, []string{second}, []string{first}, 1},
			{func() error { return os.Chmod(path, 0o644) }, []string{second}, []string{first}, 2}, // others may read it
			{func() error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) }, []string{second}, []string{first}, 3},
			{func() error { return os.Remove(path) }, nil, []string{first, second}, 3},
		} {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			<-time.After(2 * time.Second)
			synctest.Wait()
			for _, secret := range step.valid {
				if _, why, err := k.Tokens().Authenticate(&access.Asked{Secret: secret, Peer: peer, At: time.Now()}); err != nil {
					t.Errorf("step %d: a token is not valid: %s", i, why)
				}
			}
			for _, secret := range step.not {
				if _, _, err := k.Tokens().Authenticate(&access.Asked{Secret: secret, Peer: peer, At: time.Now()}); !errors.Is(err, access.ErrUnauthenticated) {
					t.Errorf("step %d: a token that is not there is valid", i)
				}
			}
			if n := int(said.Load()); n != step.errors {
				t.Errorf("step %d: %d errors were said", i, n)
			}
		}
	})
}

// A file that is being written is a part of itself: its last token has no end and no networks yet. It is taken when it is whole.
func TestFileIsTakenWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	secret, a := token("a")
	a.From = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	text, err := access.Text([]access.Token{a})
	if err != nil {
		t.Fatal(err)
	}
	part := text[:strings.Index(string(text), "    from:")]
	if _, err := access.Parse(part); err != nil {
		t.Fatalf("the part is not valid, which this test is about: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		k, err := Open(Config{File: path})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = k.Run(ctx) }()
		<-time.After(look - time.Millisecond)
		if err := os.WriteFile(path, part, 0o600); err != nil {
			t.Fatal(err)
		}
		<-time.After(look / 2) // it was looked at
		synctest.Wait()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			<-time.After(look / 10)
			if _, _, err := k.Tokens().Authenticate(&access.Asked{Secret: secret, Peer: peer, At: time.Now()}); err == nil {
				t.Fatal("a token was valid from a network that it may not come from")
			}
		}
		if n := k.Tokens().Len(); n != 1 {
			t.Errorf("%d tokens in the end", n)
		}
	})
}

// A set that could not be read again leaves the file as it was.
func TestWhatCannotBeReadIsNotWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	_, a := token("a")
	if err := WriteFile(path, []access.Token{a}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	both, roleless := a, a
	both.Subject, roleless.Grants = "CN=a", nil
	both.Digest = access.Digest{}
	for name, all := range map[string][]access.Token{"an id and a subject": {both}, "without a role": {roleless}, "one id twice": {a, a}} {
		t.Run(name, func(t *testing.T) {
			for what, err := range map[string]error{
				"WriteFile": WriteFile(path, all),
				"Change":    Change(path, func([]access.Token) ([]access.Token, error) { return all, nil }),
			} {
				if !errors.Is(err, access.ErrToken) || !strings.Contains(err.Error(), "is left as it was") {
					t.Errorf("%s: %v", what, err)
				}
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
				t.Errorf("%v, and the file is\n%s", err, after)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		cfg  Config
		says string
	}{
		"a broken file":              {Config{File: write("broken", "tokens: {", 0o600)}, "broken"},
		"a file that others read":    {Config{File: write("open", "tokens: []", 0o644)}, "chmod 600"},
		"a broken environment":       {Config{Text: "token: []"}, "environment"},
		"a local token of no form":   {Config{Local: write("local", "secret", 0o600)}, "remove the file"},
		"a local token others read":  {Config{Local: write("local2", "secret", 0o644)}, "chmod 600"},
		"a directory that is no one": {Config{Local: filepath.Join(dir, "none", "local")}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Open(c.cfg); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A group reads along only where root gave the file to it.
func TestPrivate(t *testing.T) {
	t.Parallel()
	for mode, want := range map[os.FileMode][2]bool{ // root's, another's
		0o600: {true, true}, 0o400: {true, true}, 0o640: {true, false}, 0o440: {true, false},
		0o644: {false, false}, 0o444: {false, false}, 0o660: {false, false}, 0o604: {false, false}, 0o650: {false, false},
	} {
		if got := [2]bool{private(mode, 0), private(mode, 10001)}; got != want {
			t.Errorf("%04o: %v, want %v", mode, got, want)
		}
	}
}

// The local token is made once, and may do everything.
func TestLocal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "local-token")
	var secrets []string
	for range 2 {
		k, err := Open(Config{Local: path})
		if err != nil {
			t.Fatal(err)
		}
		secret, err := ReadLocal(path)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, secret)
		p, why, err := k.Authenticate(t.Context(), &access.Asked{Secret: secret, Peer: peer})
		if err != nil || p.Name != access.LocalName || p.May(access.Admin, "") != nil {
			t.Errorf("%+v, %s, %v", p, why, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || secrets[0] != secrets[1] {
		t.Errorf("%v, %v, %q", info.Mode(), err, secrets)
	}
}

// A flood of wrong secrets has so many answers wait, and the others do not.
func TestFloodOfWrongSecrets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, err := Open(Config{})
		if err != nil {
			t.Fatal(err)
		}
		begin, wrong := time.Now(), func() time.Duration {
			secret, _ := access.NewSecret()
			if _, _, err := k.Authenticate(t.Context(), &access.Asked{Secret: secret, Peer: peer}); err == nil {
				t.Error("a wrong secret is taken")
			}
			return 0
		}
		for range 10 {
			wrong()
		}
		for range maxWaiting {
			go wrong()
		}
		synctest.Wait()
		for range 1000 {
			wrong()
		}
		if took := time.Since(begin); took != 0 || k.waiting.Load() != maxWaiting {
			t.Errorf("those beyond took %s, and %d wait", took, k.waiting.Load())
		}
		<-time.After(access.FailureWait)
		synctest.Wait()
		if n := k.waiting.Load(); n != 0 {
			t.Errorf("%d wait", n)
		}
	})
}

// The eleventh wrong secret of a minute waits a second for its answer; a right one does not.
func TestWrongSecretsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		secret, a := token("a")
		text, err := access.Text([]access.Token{a})
		if err != nil {
			t.Fatal(err)
		}
		k, err := Open(Config{Text: string(text)})
		if err != nil {
			t.Fatal(err)
		}
		wrong, _ := access.NewSecret()
		begin := time.Now()
		for range 12 {
			if _, _, err := k.Authenticate(t.Context(), &access.Asked{Secret: wrong, Peer: peer}); err == nil {
				t.Fatal("a wrong secret is taken")
			}
		}
		if took := time.Since(begin); took != 2*access.FailureWait {
			t.Errorf("twelve wrong secrets took %s", took)
		}
		begin = time.Now()
		if _, why, err := k.Authenticate(t.Context(), &access.Asked{Secret: secret, Peer: peer}); err != nil || time.Since(begin) != 0 {
			t.Errorf("%s, %v after %s", why, err, time.Since(begin))
		}
	})
}
