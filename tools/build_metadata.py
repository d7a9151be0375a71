"""Long description and addresses of the package; a metadata hook of hatchling.

Both depend on one setting of pyproject.toml, the address of the repository:

    [tool.hatch.metadata.hooks.custom]
    base-url = "https://example.org/mercer"

The links of README.md are relative, which does not work on a package index.  In the long
description they become `<base-url>/blob/<tag>/<path>`, and pictures
`<base-url>/raw/<tag>/<path>`.  GitHub and GitLab use these forms of addresses.  While base-url is
empty, relative links become plain text, relative pictures are left out, and the package has no
addresses.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"(^```.*?^```$)", re.M | re.S)
_PICTURE = re.compile(r"!\[(?P<text>[^\]]*)\]\((?P<target>[^()\s]+)\)")
# The text of a link may contain pictures, such as badges.
_LINK = re.compile(
    r"(?<!!)\[(?P<text>(?:!\[[^\]]*\]\([^()\s]*\)|[^\[\]])*)\]\((?P<target>[^()\s]+)\)"
)
_ABSOLUTE = re.compile(r"[a-z]+:", re.I)


def get_metadata_hook() -> type:
    """Return the class of the hook; hatchling calls this function."""
    # Imported here, so that the other functions can be used without hatchling.
    from hatchling.metadata.plugin.interface import MetadataHookInterface

    class AddressHook(MetadataHookInterface):
        """Set the fields `readme` and `urls` of the project."""

        def update(self, metadata: dict[str, Any]) -> None:
            readme = Path(self.root, "README.md").read_text("utf-8")
            metadata |= address_fields(self.config.get("base-url", ""), readme, metadata["version"])

    return AddressHook


def address_fields(base: str, readme: str, version: str) -> dict[str, Any]:
    """Return the fields of the metadata that depend on the address of the repository."""
    check_base(base)
    tag = tag_of(version)
    text = long_description(readme, base, tag)
    return {
        "readme": {"content-type": "text/markdown", "text": text},
        "urls": project_urls(base, tag),
    }


def check_base(base: str) -> None:
    """Raise a ValueError if the address of the repository is not valid."""
    if base and not re.fullmatch(r"https://[^\s?#]+[^\s?#/]", base):
        raise ValueError(
            f"base-url in pyproject.toml is {base!r}, but must be the address of the repository "
            "without a slash at its end, such as 'https://example.org/mercer', or empty"
        )


def tag_of(version: str) -> str:
    """Return the tag of a released version, and the branch main for development versions."""
    return "main" if "dev" in version else f"v{version}"


def project_urls(base: str, tag: str) -> dict[str, str]:
    """Return the addresses that a package index shows; empty if there is no base address."""
    if not base:
        return {}
    return {
        "Homepage": base,
        "Documentation": f"{base}/blob/{tag}/README.md#documentation",
        "Changelog": f"{base}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{base}/issues",
    }


def long_description(text: str, base: str, tag: str) -> str:
    """Return a Markdown text whose relative links are absolute, or are removed without a base.

    Parameters
    ----------
    text : str
        README.md.
    base : str
        Address of the repository, or "".
    tag : str
        Tag or branch that the links refer to.
    """

    def picture(found: re.Match[str]) -> str:
        if _ABSOLUTE.match(found["target"]):
            return found[0]
        return f"![{found['text']}]({base}/raw/{tag}/{found['target']})" if base else ""

    def link(found: re.Match[str]) -> str:
        label, target = found["text"], found["target"]
        if not label or _ABSOLUTE.match(target):
            return found[0] if label else ""
        page = f"README.md{target}" if target.startswith("#") else target
        return f"[{label}]({base}/blob/{tag}/{page})" if base else label

    parts = _FENCE.split(text)  # code blocks have odd positions
    parts[::2] = [_LINK.sub(link, _PICTURE.sub(picture, part)) for part in parts[::2]]
    return re.sub(r"\n{3,}", "\n\n", "".join(parts))
