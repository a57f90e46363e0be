# Takes the first C++ example of the README out, so that it is compiled and run as it stands there.
file(READ ${readme} text)
string(FIND "${text}" "```cpp\n" begin)
math(EXPR begin "${begin} + 7")
string(SUBSTRING "${text}" ${begin} -1 text)
string(FIND "${text}" "```" end)
string(SUBSTRING "${text}" 0 ${end} text)
file(WRITE ${output} "${text}")
