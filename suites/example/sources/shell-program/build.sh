# "Compiles" the program: puts the version into it and makes its input.
set -eu
mkdir out
sed "s/@VERSION@/$(cat VERSION)/" count-words.in >out/count-words
chmod +x out/count-words
i=0
while [ "$i" -lt 2000 ]; do
	echo "the quick brown fox $i jumps over the lazy dog"
	i=$((i + 1))
done >out/words.txt
