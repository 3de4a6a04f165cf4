package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// variables are the environment's names of the keys, without the prefix.
func variables() []string {
	names := []string{"CONFIG"}
	for i := range keys {
		names = append(names, strings.ToUpper(keys[i].name))
	}
	return names
}

// fromEnv is the key's value in the environment; an empty variable is none.
func (k *key) fromEnv() (value, error) {
	if text := os.Getenv(k.env()); text != "" {
		return value{text, k.env()}, nil
	}
	name := os.Getenv(k.env() + "_FILE")
	if !k.secret || name == "" {
		return value{}, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return value{}, fmt.Errorf("%s_FILE: %w", k.env(), err)
	}
	return value{strings.TrimSpace(string(text)), k.env() + "_FILE"}, nil
}

// foreignEnv are variables of the prefix that are not settings: where the file of settings is, the engine's and
// the tests' own, and those Kubernetes makes for a service called almanac.
var foreignEnv = regexp.MustCompile(`^((CONFIG|LIBCHDB|ENGINE_CHILD|REQUIRE_ENGINE|TEST_.*|(.*_)?SERVICE_(HOST|PORT)(_.*)?)=|(.*_)?PORT(_[0-9]+_.*)?=[a-z]+://|(.*_)?PORT_[0-9]+_.*=)`)

// checkEnvironment refuses variables that are not settings. The prefix is also
// that of the user's own scripts, so it takes offence only at those that look
// like a slip, unless strict.
func checkEnvironment(environ []string, strict bool) error {
	for _, e := range environ {
		text, ours := strings.CutPrefix(e, envPrefix)
		if !ours || foreignEnv.MatchString(text) {
			continue
		}
		name, _, _ := strings.Cut(text, "=")
		lower := strings.ToLower(name)
		secret, inFile := strings.CutSuffix(lower, "_file")
		if k := findKey(secret); findKey(lower) != nil || inFile && k != nil && k.secret {
			continue
		}
		if near := suggestion(name, variables(), envPrefix); near != "" || strict {
			return fmt.Errorf("unknown variable %s%s", envPrefix+name, near)
		}
	}
	return nil
}
