package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/almanac-events/almanac/internal/intake"
)

// delimiter reads --delimiter: one character, or \t or tab.
func (f *reading) delimiter() rune {
	text := f.flag("delimiter")
	if text == `\t` || text == "tab" {
		return '\t'
	}
	r, n := utf8.DecodeRuneInString(text)
	if n != len(text) {
		f.fail("delimiter", fmt.Errorf("%q is not one character", text))
	}
	if n == 0 {
		return 0
	}
	return r
}

// columns reads --map.
func (f *reading) columns() map[string]string {
	pairs, err := f.flags.Flags().GetStringArray("map")
	f.fail("map", err)
	columns := map[string]string{}
	for _, text := range pairs {
		column, path, ok := strings.Cut(text, "=")
		if !ok || column == "" || path == "" {
			f.fail("map", fmt.Errorf("%q is not COLUMN=FIELD, such as type=eventName", text))
		}
		if columns[path] != "" {
			f.fail("map", fmt.Errorf("field %q cannot fill both %s and %s", path, columns[path], column))
		}
		columns[path] = column
	}
	return columns
}

// long reads --cut and --split.
func (f *reading) long() intake.Long {
	switch cut, split := f.flag("cut") == "true", f.flag("split") == "true"; {
	case cut && split:
		f.fail("cut", errors.New("--cut and --split name two ways for one record; leave one out"))
	case cut:
		return intake.LongCut
	case split:
		return intake.LongSplit
	}
	return intake.LongRefuse
}

func (f *reading) options() intake.Options {
	zone, err := time.LoadLocation(f.flag("tz"))
	f.fail("tz", err)
	year, err := f.flags.Flags().GetInt("year")
	f.fail("year", err)
	return intake.Options{
		Format: f.flag("format"), Multiline: f.regex("multiline"),
		TsField: f.flag("ts-field"), TsFormat: f.flag("ts-format"), Location: zone, Year: year, Now: time.Now(),
		UserField: f.flag("user-field"), Columns: f.columns(), Records: f.flag("records"), UserRegex: f.regex("user-regex"), Extract: f.regex("extract"), DropRaw: f.flag("drop-raw") == "true",
		Long:        f.long(),
		RequireTime: f.flag("require-ts") == "true", Untimed: f.flags.Flags().Changed("require-ts") && f.flag("require-ts") == "false", Delimiter: f.delimiter(),
		Service: f.flag("service"), Type: f.flag("type"), Level: f.flag("level"),
	}
}
