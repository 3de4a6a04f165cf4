package embedded

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
