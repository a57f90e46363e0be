#include "key_arguments.h"

#include "arguments.h"

namespace kvkeep::python {
namespace {

Extra to_extra(nb::handle object, const Where& where) {
  if (PyUnicode_Check(object.ptr())) return to_text(object, where);
  if (PyBytes_Check(object.ptr())) {
    const auto* data = reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(object.ptr()));
    return std::vector<std::byte>(data, data + PyBytes_GET_SIZE(object.ptr()));
  }
  if (PyBool_Check(object.ptr()) || !PyIndex_Check(object.ptr())) {
    raise_type_error(where, "expected bytes, str or int, got " + type_of(object));
  }
  return to_int64(object, where);
}

}  // namespace

std::vector<Extra> to_extras(nb::handle object, const Where& where) {
  std::vector<Extra> extras;
  const nb::object items = to_list(object, where, "a sequence of bytes, str and int, or None");
  for (nb::handle item : items) extras.push_back(to_extra(item, where.at(extras.size())));
  return extras;
}

KeyRecipe to_recipe(nb::handle object) {
  const Where where("recipe");
  const auto recipe = key_recipe_from_name(to_text(object, where));
  if (!recipe.ok()) raise_status(where, recipe.status());
  return *recipe;
}

}  // namespace kvkeep::python
