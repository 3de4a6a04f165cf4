package privacy

import (
	"slices"
	"strings"
	"unicode"

	"github.com/almanac-events/almanac/schemas"
)

// placeMembers are the members of an object under coarse_location that name a place no smaller than a town.
var placeMembers = []string{
	"city", "city_name", "region", "region_name", "region_code", "region_iso_code", "state", "state_name", "province",
	"country", "country_name", "country_code", "country_iso_code", "continent", "continent_name", "continent_code",
}

// coordinates are names of fields in which no place is named.
var coordinates = []string{"lat", "latitude", "lon", "lng", "long", "longitude"}

// maxPlaceBytes bounds the name of a place: the longest of a town has 168 letters.
const maxPlaceBytes = 200

// isPlace reports whether a text names a town, a region or a country, and not more: it has no digit, as cluster numbers
// and postal codes have, and is in the field of the rule itself or in a member for such names.
func isPlace(field, name, v string) bool {
	if len(v) > maxPlaceBytes || !strings.ContainsFunc(v, unicode.IsLetter) || strings.ContainsFunc(v, notOfPlace) {
		return false
	}
	name = strings.ToLower(schemas.OnceName(name))
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.EqualFold(name, schemas.OnceName(field)) {
		return !slices.Contains(coordinates, last)
	}
	return slices.Contains(placeMembers, last)
}

// notOfPlace reports whether no name of a place has the character.
func notOfPlace(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && !strings.ContainsRune(" ,.'’-()/&", r)
}
