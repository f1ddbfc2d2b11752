module example.org/reverse

go 1.21
