package adaptertest

import "strings"

// everyHeader claims a false address in every header that proxies use for addresses.
var everyHeader = lines("X-Forwarded-For: 1.1.1.1", "Forwarded: for=1.1.1.1", "X-Real-Ip: 1.1.1.1", "Cf-Connecting-Ip: 1.1.1.1",
	"True-Client-Ip: 1.1.1.1", "X-Client-Ip: 1.1.1.1", "X-Cluster-Client-Ip: 1.1.1.1", "Fly-Client-Ip: 1.1.1.1",
	"X-Original-Forwarded-For: 1.1.1.1", "X-Forwarded: 1.1.1.1", "X-Envoy-External-Address: 1.1.1.1", "Client-Ip: 1.1.1.1")

// peerTricks come from peers that are not trusted.
var peerTricks = []trick{
	{"203.0.113.7", nil, "203.0.113.7"},
	{"203.0.113.7", everyHeader, "203.0.113.7"},
	{"10.0.0.1", everyHeader, "10.0.0.1"},
	{"127.0.0.1", everyHeader, "127.0.0.1"},
	{"::ffff:203.0.113.7", everyHeader, "203.0.113.7"},
	{"64:ff9b::203.0.113.7", everyHeader, "203.0.113.7"}, // NAT64
	{"64:ff9b::cb00:7108", everyHeader, "203.0.113.8"},
	{"64:ff9b:1::cb00:7107", everyHeader, "64:ff9b:1::/64"},           // local NAT64: not IPv4
	{"2002:cb00:7107::1", everyHeader, "2002:cb00:7107::/64"},         // 6to4, counted by /64
	{"2002:cb00:7107:1::1", everyHeader, "2002:cb00:7107:1::/64"},     //
	{"2001:0:cb00:7107::1", everyHeader, "2001:0:cb00:7107::/64"},     // Teredo: the server's /64
	{"2001:db8:1:2:3::4", everyHeader, "2001:db8:1:2::/64"},           //
	{"2001:db8:1:2:ffff::9", everyHeader, "2001:db8:1:2::/64"},        //
	{"2001:db8:1:3::4", everyHeader, "2001:db8:1:3::/64"},             //
	{"fe80::1%eth0", everyHeader, "fe80::/64"},                        //
	{"fe80::1%" + strings.Repeat("z", 500), everyHeader, "fe80::/64"}, // the zone is left out
	{"::1", everyHeader, "::/64"},
	{"unix", everyHeader, "unknown"},
}

// forTricks come through a trusted proxy: 10.0.0.1 unless the trick names another.
var forTricks = []trick{
	{"", nil, "10.0.0.1"},
	{"", lines("203.0.113.7"), "203.0.113.7"},
	{"", lines("1.1.1.1, 203.0.113.7"), "203.0.113.7"},
	{"", lines("1.1.1.1, 203.0.113.7, 10.9.9.9"), "203.0.113.7"},
	{"", lines("1.1.1.1, 10.5.5.5, 203.0.113.7, 10.9.9.9"), "203.0.113.7"},
	{"", lines("10.3.3.3, 10.2.2.2"), "10.3.3.3"},
	{"", lines("203.0.113.7,10.9.9.9"), "203.0.113.7"},
	{"", lines("1.1.1.1", "203.0.113.7", "10.9.9.9"), "203.0.113.7"},
	{"", lines("203.0.113.7", "198.51.100.9"), "198.51.100.9"},
	{"", lines("1.1.1.1, 203.0.113.7", "10.9.9.9, 10.8.8.8"), "203.0.113.7"},

	// The peer's address in every notation.
	{"203.0.113.9", lines("1.1.1.1"), "203.0.113.9"},
	{"::ffff:10.0.0.1", lines("203.0.113.7"), "203.0.113.7"},
	{"64:ff9b::10.0.0.1", lines("203.0.113.7"), "203.0.113.7"},
	{"::ffff:203.0.113.9", lines("1.1.1.1"), "203.0.113.9"},
	{"fd00::1", lines("203.0.113.7"), "203.0.113.7"},
	{"fd00::1%eth0", lines("203.0.113.7"), "203.0.113.7"},
	{"2002:a00:1::", lines("1.1.1.1"), "2002:a00:1::/64"}, // 6to4 form of 10.0.0.1, not trusted in this form
	{"::10.0.0.1", lines("1.1.1.1"), "::/64"},             // IPv4-compatible, not trusted either
	{"unix", lines("203.0.113.7"), "203.0.113.7"},
	{"unix", lines("1.1.1.1, junk"), "unknown"},

	// One address in many notations.
	{"", lines("::ffff:203.0.113.7"), "203.0.113.7"},
	{"", lines("::FFFF:203.0.113.7"), "203.0.113.7"},
	{"", lines("::ffff:cb00:7107"), "203.0.113.7"},
	{"", lines("0:0:0:0:0:ffff:cb00:7107"), "203.0.113.7"},
	{"", lines("0000:0000:0000:0000:0000:ffff:203.0.113.7"), "203.0.113.7"},
	{"", lines("[::ffff:203.0.113.7]:80"), "203.0.113.7"},
	{"", lines("::ffff:203.0.113.7%eth0"), "203.0.113.7"},
	{"", lines("64:ff9b::203.0.113.7"), "203.0.113.7"},
	{"", lines("0064:ff9b::cb00:7107"), "203.0.113.7"},
	{"", lines("[64:ff9b::cb00:7107]:443"), "203.0.113.7"},
	{"", lines("64:ff9b::cb00:7107%1"), "203.0.113.7"},
	{"", lines("64:ff9b::1:cb00:7107"), "64:ff9b::/64"},
	{"", lines("2002:cb00:7107::"), "2002:cb00:7107::/64"},
	{"", lines("203.0.113.7:4711"), "203.0.113.7"},
	{"", lines("203.0.113.7:0"), "203.0.113.7"},
	{"", lines("2001:db8:1:2:3::4"), "2001:db8:1:2::/64"},
	{"", lines("2001:DB8:1:2:3::4"), "2001:db8:1:2::/64"},
	{"", lines("2001:0db8:0001:0002:0003:0:0:4"), "2001:db8:1:2::/64"},
	{"", lines("[2001:db8:1:2:3::4]"), "2001:db8:1:2::/64"},
	{"", lines("[2001:db8:1:2:3::4]:4711"), "2001:db8:1:2::/64"},
	{"", lines("2001:db8:1:2::4%25eth0"), "2001:db8:1:2::/64"},
	{"", lines("[fe80::1%eth0]:80"), "fe80::/64"},
	{"", lines("203.0.113.7, fd00::1%eth0"), "203.0.113.7"},
	{"", lines("203.0.113.7, [fd00::1]:80"), "203.0.113.7"},
	{"", lines("203.0.113.7, ::ffff:10.9.9.9"), "203.0.113.7"},

	// A text that is not an address ends the search at the hop before it.
	{"", lines("1.1.1.1, 010.0.0.1"), "10.0.0.1"},
	{"", lines("1.1.1.1, 10.0.0.01"), "10.0.0.1"},
	{"", lines("1.1.1.1, ::ffff:010.0.0.1"), "10.0.0.1"},
	{"", lines("1.1.1.1, 00000:ff9b::1"), "10.0.0.1"},
	{"", lines("0x01.1.1.1"), "10.0.0.1"},
	{"", lines("16843009"), "10.0.0.1"},
	{"", lines("1.1.1"), "10.0.0.1"},
	{"", lines("1.1.1.1.1"), "10.0.0.1"},
	{"", lines("256.1.1.1"), "10.0.0.1"},
	{"", lines("1.1.1.1."), "10.0.0.1"},
	{"", lines("+1.1.1.1"), "10.0.0.1"},
	{"", lines("1.1.1.1/32"), "10.0.0.1"},
	{"", lines("1.1.1.1:"), "10.0.0.1"},
	{"", lines("1.1.1.1:65536"), "10.0.0.1"},
	{"", lines("1.1.1.1:-1"), "10.0.0.1"},
	{"", lines("1.1.1.1:80:80"), "10.0.0.1"},
	{"", lines("[1.1.1.1"), "10.0.0.1"},
	{"", lines("2001:db8::1]"), "10.0.0.1"},
	{"", lines("[[2001:db8::1]]"), "10.0.0.1"},
	{"", lines("1:2:3:4:5:6:7:8:9"), "10.0.0.1"},
	{"", lines("2001:db8::1::2"), "10.0.0.1"},
	{"", lines("fe80::1%"), "10.0.0.1"},
	{"", lines("1.1.1.1, unknown"), "10.0.0.1"},
	{"", lines("1.1.1.1, UNKNOWN, 10.9.9.9"), "10.9.9.9"},
	{"", lines("1.1.1.1, _hidden"), "10.0.0.1"},
	{"", lines("1.1.1.1, _SEVKISEK"), "10.0.0.1"},
	{"", lines("for=1.1.1.1"), "10.0.0.1"},
	{"", lines(`"1.1.1.1"`), "10.0.0.1"},
	{"", lines("localhost"), "10.0.0.1"},
	{"", lines("1.1.1.1;203.0.113.7"), "10.0.0.1"},
	{"", lines("1.1.1.1 203.0.113.7"), "10.0.0.1"},
	{"", lines("1.1.1.1,,10.9.9.9"), "10.9.9.9"},
	{"", lines("1.1.1.1, "), "10.0.0.1"},
	{"", lines(",1.1.1.1"), "1.1.1.1"},
	{"", lines("1.1.1.1", ""), "10.0.0.1"},
	{"", lines("", "1.1.1.1"), "1.1.1.1"},
	{"", lines(",,,"), "10.0.0.1"},
	{"", lines("%31.1.1.1"), "10.0.0.1"},
	{"", lines("1.1.1.1%00"), "10.0.0.1"},
	{"", lines("junk, 203.0.113.7"), "203.0.113.7"},

	// Other headers do not count, and neither does their order.
	{"", append(lines("203.0.113.7"), everyHeader[1:]...), "203.0.113.7"},
	{"", append(append([]string(nil), everyHeader[1:]...), "203.0.113.7"), "203.0.113.7"},
	{"", everyHeader[1:], "10.0.0.1"},
	{"", lines("X-Forwarded-For-: 1.1.1.1"), "10.0.0.1"},

	{"", lines(strings.Repeat("1.1.1.1, ", 200) + "203.0.113.7"), "203.0.113.7"},
	{"", lines("203.0.113.7" + strings.Repeat(", 10.2.2.2", 200)), "203.0.113.7"},
}

// forwardedTricks use the header of RFC 7239.
var forwardedTricks = []trick{
	{"", nil, "10.0.0.1"},
	{"", lines("for=203.0.113.7"), "203.0.113.7"},
	{"", lines("For=203.0.113.7"), "203.0.113.7"},
	{"203.0.113.9", lines("for=1.1.1.1"), "203.0.113.9"},
	{"", lines("X-Forwarded-For: 1.1.1.1"), "10.0.0.1"},
	{"", lines("for=1.1.1.1, for=203.0.113.7"), "203.0.113.7"},
	{"", lines("for=1.1.1.1", "for=203.0.113.7", "for=10.9.9.9"), "203.0.113.7"},
	{"", lines(`proto=https;for="[2001:db8:1:2:3::4]:4711";by=10.0.0.1`), "2001:db8:1:2::/64"},
	{"", lines(`for="[::ffff:203.0.113.7]"`), "203.0.113.7"},
	{"", lines(`for="[64:ff9b::cb00:7107]:80"`), "203.0.113.7"},
	{"", lines(`for="203.0.113.7:80"`), "203.0.113.7"},
	{"", lines("for=203.0.113.7:80"), "203.0.113.7"}, // unquoted, as many proxies write it
	{"", lines("for=1.1.1.1, for=unknown"), "10.0.0.1"},
	{"", lines("for=1.1.1.1, for=Unknown, for=10.9.9.9"), "10.9.9.9"},
	{"", lines("for=1.1.1.1, for=_hidden"), "10.0.0.1"},
	{"", lines(`for=1.1.1.1, for="_gazonk:_port"`), "10.0.0.1"},
	{"", lines(`for=1.1.1.1, for="203.0.113.7:_port"`), "10.0.0.1"},
	{"", lines("for=1.1.1.1, for=010.0.0.1"), "10.0.0.1"},
	{"", lines("for=1.1.1.1,"), "10.0.0.1"},
	{"", lines("for=1.1.1.1", ""), "10.0.0.1"},
	{"", lines("for=1.1.1.1, for="), "10.0.0.1"},
	{"", lines(`for=1.1.1.1, for=""`), "10.0.0.1"},
	{"", lines("for=1.1.1.1, proto=https"), "10.0.0.1"},
	{"", lines("for=1.1.1.1, xfor=203.0.113.7"), "10.0.0.1"},
	{"", lines("203.0.113.7"), "10.0.0.1"},
	{"", lines(`for="1.1.1.1, for=203.0.113.7`), "203.0.113.7"},
	{"", lines(`for="1.1.1.1`, "for=203.0.113.7"), "203.0.113.7"},
	{"", lines(`for="1.1.1.1\", for=203.0.113.7`), "203.0.113.7"},
	{"", lines(`for=1.1.1.1, host="a,for=2.2.2.2";for=203.0.113.7`), "203.0.113.7"},
	{"", lines(`for=203.0.113.7;host="a,for=2.2.2.2"`), "203.0.113.7"},
	{"", lines(`for=203.0.113.7;host="a\",for=2.2.2.2"`), "203.0.113.7"},
	{"", lines(`for=203.0.113.7;host="a;for=2.2.2.2"`), "203.0.113.7"},
	{"", lines("for=%31.1.1.1"), "10.0.0.1"},
	{"", lines(strings.Repeat("for=1.1.1.1, ", 200) + "for=203.0.113.7"), "203.0.113.7"},
}

// realTricks use a header that holds one address.
var realTricks = []trick{
	{"", nil, "10.0.0.1"},
	{"", lines("203.0.113.7"), "203.0.113.7"},
	{"203.0.113.9", lines("1.1.1.1"), "203.0.113.9"},
	{"", lines("203.0.113.7:80"), "203.0.113.7"},
	{"", lines("::ffff:203.0.113.7"), "203.0.113.7"},
	{"", lines("1.1.1.1", "203.0.113.7"), "203.0.113.7"},
	{"", lines("1.1.1.1, 203.0.113.7"), "203.0.113.7"},
	{"", lines("unknown"), "10.0.0.1"},
	{"", lines("", "X-Forwarded-For: 1.1.1.1"), "10.0.0.1"},
}

// lineTricks are header lines that only HTTP/1.1 can spell.
var lineTricks = []trick{
	{"", lines("x-forwarded-for: 203.0.113.7"), "203.0.113.7"},
	{"", lines("X-FORWARDED-FOR: 203.0.113.7"), "203.0.113.7"},
	{"", lines("X-Forwarded-For: 1.1.1.1", "x-forwarded-for: 203.0.113.7"), "203.0.113.7"},
	{"", lines("x-FORWARDED-for: 203.0.113.7", "X-Forwarded-For: 10.9.9.9"), "203.0.113.7"},
	{"", lines("X-Forwarded-For: \t 203.0.113.7 \t "), "203.0.113.7"},
	{"", lines("X-Forwarded-For: 1.1.1.1\t,\t203.0.113.7\t,\t10.9.9.9"), "203.0.113.7"},
	{"", lines("X_Forwarded_For: 1.1.1.1"), "10.0.0.1"},
	{"", lines("X-Forwarded-For: 1.1.1.1", "X_Forwarded_For: 2.2.2.2"), "1.1.1.1"},
	{"", lines("X-Forwarded-For: 1.1.1.1\u00a0"), "1.1.1.1"},
	{"", lines("X-Junk: a\nX-Forwarded-For: 203.0.113.7"), "203.0.113.7"},
	{"", lines("X-Forwarded-For: 1.1.1.1,\r\n 203.0.113.7"), "203.0.113.7"},
	{"", lines("X-Forwarded-For: 203.0.113.7\r\n , 10.9.9.9"), "203.0.113.7"},
	{"", lines("X-Forwarded-For: 203.0.113.7\r\n\tX-Forwarded-For: 1.1.1.1"), "10.0.0.1"},
	{"", lines("X-Forwarded-For: 1.1.1.1\x00"), refused},
	{"", lines("X-Forwarded-For: 1.1.1.1\r, 203.0.113.7"), refused},
	{"", lines(" X-Forwarded-For: 1.1.1.1"), "10.0.0.1"},
	{"", lines("X-Forwarded-For: 1.1.1.\u0661"), "10.0.0.1"},
	{"", lines("X-Forwarded-For: \xff\xfe"), "10.0.0.1"},
	// fasthttp deletes the first of these lines by moving the last one into its place.
	{"", lines("Transfer-Encoding: chunked", "1.1.1.1", "203.0.113.7\r\n\r\n0"), "203.0.113.7"},
	{"", lines("Transfer-Encoding: chunked", "1.1.1.1,\r\n 2.2.2.2", "203.0.113.7\r\n\r\n0"), "203.0.113.7"},
}

// trailerTricks follow a body in chunks, so they come behind every line that a proxy sets.
var trailerTricks = []trick{
	{"", lines("203.0.113.7", chunked("")), "203.0.113.7"},
	{"", lines("203.0.113.7", chunked("", "Cf-Connecting-Ip: 1.1.1.1")), "203.0.113.7"},
	{"", lines("203.0.113.7", chunked("body", "Cf-Connecting-Ip: 1.1.1.1")), "203.0.113.7"},
	{"", lines("203.0.113.7", chunked("body", "cf-connecting-ip: 1.1.1.1", "CF-Connecting-IP: 2.2.2.2")), "203.0.113.7"},
	{"", lines("cf-connecting-IP: 203.0.113.7", chunked("", "Cf-Connecting-Ip: 1.1.1.1")), "203.0.113.7"},
	{"", lines("203.0.113.7", "Trailer: Cf-Connecting-Ip", chunked("body", "Cf-Connecting-Ip: 1.1.1.1")), "203.0.113.7"},
	{"", lines("198.51.100.9", "203.0.113.7", chunked("", "Cf-Connecting-Ip: 1.1.1.1")), "203.0.113.7"},
	{"", lines("198.51.100.9,\r\n 203.0.113.7", chunked("", "Cf-Connecting-Ip: 1.1.1.1")), "203.0.113.7"},
	{"", lines("203.0.113.7", "X-Junk: a\r\n\tCf-Connecting-Ip: 9.9.9.9", chunked("", "Cf-Connecting-Ip: 1.1.1.1")), "203.0.113.7"},
	{"", lines("203.0.113.7", chunked("", "X-Junk: a", "Cf-Connecting-Ip: 1.1.1.1", "Cf-Connecting-Ip: 2.2.2.2")), "203.0.113.7"},
	{"", lines("203.0.113.7", "X-Junk: "+strings.Repeat("a", 3000), chunked("", "Cf-Connecting-Ip: 1.1.1.1")), "203.0.113.7"},
	{"", lines(chunked("", "Cf-Connecting-Ip: 1.1.1.1")), "10.0.0.1"},
	{"", lines(chunked("body", "Cf-Connecting-Ip: 1.1.1.1")), "10.0.0.1"},
	{"203.0.113.9", lines(chunked("", "Cf-Connecting-Ip: 1.1.1.1")), "203.0.113.9"},
}
