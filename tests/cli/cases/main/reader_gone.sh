# A reader that has seen enough is no reason to complain. The first sleep lets it go first.
{ sleep 0.2; roofline list models; echo "exit $?" >code; } | true
cat code
