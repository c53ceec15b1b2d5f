"""What column names commonly mean. Only used to propose a policy, never to decide anything."""

from __future__ import annotations

import re

PEOPLE = {"person", "patient", "customer", "client", "member", "subject", "employee", "student", "user", "insured"}
NUMBERED = {"id", "uuid", "guid", "mrn", "nr", "no", "number", "num", "key", "identifier", "idcode", "pid", "pidp"}
_NAMES = {"surname", "lastname", "firstname", "forename", "fullname", "username", "nickname"}
_CONTACT = {"email", "mail", "phone", "telephone", "mobile", "fax", "address", "street", "url", "ip"}
_PAPERS = {"ssn", "passport", "iban", "account", "licence", "license", "mrn", "nhs"}
_IDENTIFYING = _NAMES | _CONTACT | _PAPERS
_QUALIFIERS = {"first", "last", "full", "given", "family", "middle", "maiden", "sur", "user", "nick"}

BORN = {"birth", "birthday", "birthdate", "birthyear", "born", "dob", "yob"}
PLACES = {"country", "city", "region", "state", "county", "smsa", "urban", "rural", "south", "district", "province"}
_SCHOOLING = {"education", "educ", "schooling", "degree", "grade", "collgrad", "college"}
_FAMILY = {"marital", "married", "marstat", "mar", "msp", "spouse", "children"}
POSTAL = {"zip", "zipcode", "postcode", "postal", "plz", "fips", "code", "cd"}
KNOWN = {"age", "sex", "gender", "zip", "zipcode", "postcode", "postal", "plz", "race", "ethnicity", "nationality"}
KNOWN |= BORN | PLACES | _SCHOOLING | _FAMILY | {"year"}
MEASURED = BORN | {"age", "year", "yr", "grade", "schooling", "height", "weight", "children", "household", "size"}
"""Of these, numbers are numbers even where there are few of them."""

ILLNESSES = {"diagnosis", "diagnoses", "diag", "dx", "dgns", "icd", "disease", "condition", "illness", "disorder"}
ILLNESSES |= {"symptom", "hiv", "cancer", "cncr", "tumor", "tumour", "diabetes", "depression", "depressn", "stroke"}
ILLNESSES |= {"strketia", "asthma", "copd", "chf", "heart", "ischmcht", "kidney", "chrnkidn", "alzheimer", "alzhdmta"}
ILLNESSES |= {"osteoprs", "arthritis", "dementia", "chronic", "treatment", "medication", "drug", "procedure", "hcpcs"}
ILLNESSES |= {"disability", "result", "infection", "pregnant", "pregnancy", "abortion", "addiction", "smoker"}
ILLNESSES |= {"oa", "esrd"}
LIVELIHOODS = {"occupation", "occ", "occupational", "job", "profession", "salary", "income", "wage", "wages"}
LIVELIHOODS |= {"earnings", "debt", "credit", "pay", "wealth", "benefit", "benefits", "reimbursement", "charges"}
BELIEFS = {"religion", "orientation", "party", "vote", "offence", "offense", "crime", "union", "industry"}
SENSITIVE = ILLNESSES | LIVELIHOODS | BELIEFS
"""What others must not learn; the first of these three is asked for most."""
CONSENT = {"consent", "consented", "agrees", "agreed", "permission", "optin"}


def is_identifying(name: str) -> bool:
    """Whether a column is named like something that points at one person: a name, a number, a way to reach them."""
    words = words_of(name)
    return bool(words & _IDENTIFYING) or words == {"name"} or ("name" in words and bool(words & (PEOPLE | _QUALIFIERS)))


def words_of(name: str) -> set[str]:
    """The words in a column name: `patientId`, `PATIENT_ID` and `Patient id` are patient and id."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+", name)}
