# Writes OUTPUT, a C++ file with the text of INPUT: `std::string_view NAMESPACE::NAME() { return …; }`, declared in
# HEADER. Run as cmake -D INPUT=… -D OUTPUT=… -D HEADER=… -D NAMESPACE=… -D NAME=… -P embed_text.cmake.
file(READ "${INPUT}" text)
set(mark kvkeep_text)
string(FIND "${text}" ")${mark}\"" found)
if(NOT found EQUAL -1)
  message(FATAL_ERROR "${INPUT} holds )${mark}\", which would end it in C++")
endif()
file(WRITE "${OUTPUT}" "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\nstd::string_view ${NAME}() {\n  return R\"${mark}(${text})${mark}\";\n}\n\n}  // namespace ${NAMESPACE}\n")
