"""Download of dictionaries for full-text search: ``python -m lance_dataset.download jieba``."""

from lance_dataset.api.downloads import (
    check_lindera,
    download_jieba,
    download_lindera,
    import_requests,
    language_model_home,
    main,
)

__all__ = [
    "LANGUAGE_MODEL_HOME",
    "check_lindera",
    "download_jieba",
    "download_lindera",
    "import_requests",
    "language_model_home",
    "main",
]

#: Folder of dictionaries when the module was imported.
LANGUAGE_MODEL_HOME: str = language_model_home()

if __name__ == "__main__":
    main()
