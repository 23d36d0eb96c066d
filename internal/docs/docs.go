// Package docs knows where the documentation for users is published, for messages that refer to it.
package docs

// Base precedes the names of the pages in docs. It is a placeholder until the module is published:
// it begins with the path of the module, which make module replaces here as well. The rest fits
// GitHub; with another host, change it by hand.
const Base = "https://holdfast/blob/HEAD/docs/"
