package embedded

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/almanac-events/almanac/internal/access"
)

// The users of an embedded ClickHouse.
const (
	// UserAlmanac may do everything; Almanac's own connections use it.
	UserAlmanac = "almanac"
	// UserReader may read Almanac's database within limits; SQL that people type uses it.
	UserReader = "reader"
)

// passwords of the users, made once per data directory.
type passwords struct {
	Almanac string `json:"almanac"`
	Reader  string `json:"reader"`
}

// loadPasswords reads them from path, or makes and keeps them there (mode 0600) if there are none yet.
func loadPasswords(path string) (passwords, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		p := passwords{Almanac: rand.Text(), Reader: rand.Text()}
		data, err := json.Marshal(p)
		if err != nil {
			return p, err
		}
		return p, writeFile(path, append(data, '\n'))
	}
	if err != nil {
		return passwords{}, fmt.Errorf("reading the engine's passwords: %w", err)
	}
	var p passwords
	if err := json.Unmarshal(data, &p); err != nil || p.Almanac == "" || p.Reader == "" {
		return p, fmt.Errorf("the password file %s is damaged: remove it, new ones are made at the next start", path)
	}
	return p, nil
}

// NATSPasswords reads those of the NATS users (access.NATSUsers) from the directory of the streams, and makes and keeps
// (mode 0600) what is missing.
func (d *DataDir) NATSPasswords() (map[string]string, error) {
	path := filepath.Join(d.NATSDir(), "passwords.json")
	data, err := os.ReadFile(path)
	all := map[string]string{}
	if err == nil {
		err = json.Unmarshal(data, &all)
		if err != nil {
			return nil, fmt.Errorf("the password file %s is damaged: remove it, new ones are made at the next start", path)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the passwords of NATS: %w", err)
	}
	made := false
	users := access.NATSUsers()
	for i := range users {
		if name := users[i].Name; all[name] == "" {
			all[name], made = rand.Text(), true
		}
	}
	if !made {
		return all, nil
	}
	if data, err = json.Marshal(all); err == nil {
		err = os.MkdirAll(d.NATSDir(), 0o700)
	}
	if err != nil {
		return nil, err
	}
	return all, writeFile(path, append(data, '\n'))
}
