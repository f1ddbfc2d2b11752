// Package pages holds the tests of the web pages in a real browser, on the real service:
// what people see, do with the keyboard alone, and print.
package pages
